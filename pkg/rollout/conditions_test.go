package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// conditionHarness carries out what Advance says of one function, by what it is told of the units.
type conditionHarness struct {
	now       time.Time
	f         *v1alpha1.Function
	revisions []*v1alpha1.FunctionRevision
	look      ConditionInput
}

func newConditionHarness() *conditionHarness {
	s := &conditionHarness{now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), f: &v1alpha1.Function{}}
	s.f.Name, s.f.Namespace, s.f.UID = "f", "team", "uid-f"
	v1alpha1.Default(s.f)
	s.look.Units = make(map[string]Observation)
	s.deploy("a:1")
	return s
}

// change makes a new generation of the function.
func (s *conditionHarness) change(how func(*v1alpha1.FunctionSpec)) {
	s.f.Generation++
	how(&s.f.Spec)
}

func (s *conditionHarness) deploy(image string) {
	s.change(func(spec *v1alpha1.FunctionSpec) { spec.Template.Image = image })
}

// conditions says something of the revision of that number, by a scheduler that knows the
// present generation.
func (s *conditionHarness) conditions(number int64, u Observation) {
	u.Observed, u.Generation = true, s.f.Generation
	s.look.Units[v1alpha1.RevisionName("f", number)] = u
}

// told are the conditions once everything was carried out.
func (s *conditionHarness) told() []metav1.Condition {
	for range 3 {
		s.look.Now, s.look.Function, s.look.Plan, s.look.Revisions = s.now, s.f, Plan{State: StateOf(s.f)}, s.revisions
		if s.look.Refused == nil && s.f.DeletionTimestamp.IsZero() {
			s.look.Plan, s.look.Revisions = Advance(s.now, s.f, s.revisions, s.look.Units)
			if s.revisions = s.look.Revisions; s.look.Plan.Create != nil && s.look.NotCreated == nil {
				made := s.look.Plan.Create
				made.UID = types.UID("uid-" + made.Name)
				s.revisions = append(slices.Clone(s.revisions), made)
			}
			s.look.Plan.State.Write(&s.f.Status)
		}
		s.f.Status.Conditions, s.f.Status.ObservedGeneration = Conditions(s.look)
	}
	return s.f.Status.Conditions
}

func brief(conditions []metav1.Condition) string {
	var words []string
	for _, c := range conditions {
		words = append(words, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
	}
	return strings.Join(words, " ")
}

// Known units.
var (
	starting = Observation{}
	idle     = Observation{Started: true}
	serving  = Observation{Started: true, Ready: 2}
	full     = Observation{NoRoom: "no node has 2 CPUs left"}
	exits    = Observation{Failure: &Failure{v1alpha1.ReasonFunctionExited, "the function exited with status 1; its last log lines:\nImportError"}}
)

// shown is a text with the conditions that are always there, apart from those that are as
// they should be.
func shown(ready, revision, floor string, others ...string) string {
	return strings.Join(append([]string{"Ready=" + ready, "Accepted=True/Accepted", "RevisionReady=" + revision, "MinInstancesReady=" + floor}, others...), " ")
}

const (
	started = "True/Started"
	enough  = "True/EnoughInstances"
)

func TestConditionsOfEverySituation(t *testing.T) {
	draining := metav1.NewTime(time.Date(2026, 3, 4, 5, 6, 0, 0, time.UTC))
	// good is a function whose first revision serves.
	good := func(s *conditionHarness) {
		s.conditions(1, serving)
		s.told()
	}
	// update is good, and its second revision is known as said.
	update := func(u Observation) func(*conditionHarness) {
		return func(s *conditionHarness) {
			good(s)
			s.deploy("a:2")
			s.conditions(1, serving)
			s.conditions(2, u)
		}
	}
	late := func(then func(*conditionHarness)) func(*conditionHarness) {
		return func(s *conditionHarness) {
			then(s)
			s.told()
			s.now = s.now.Add(v1alpha1.DefaultProgressDeadline)
		}
	}
	first := func(u Observation) func(*conditionHarness) { return func(s *conditionHarness) { s.conditions(1, u) } }
	steps := func(s *conditionHarness) {
		s.f.Spec.Rollout.Strategy = v1alpha1.RolloutSteps
		s.f.Spec.Rollout.Steps = []v1alpha1.RolloutStep{{Weight: 10, Hold: v1alpha1.Duration{Duration: time.Hour}}}
	}
	stepping := func(u Observation) func(*conditionHarness) {
		return func(s *conditionHarness) {
			steps(s)
			update(u)(s)
		}
	}
	unverified := func(u Observation) func(*conditionHarness) {
		return func(s *conditionHarness) {
			s.f.Spec.Rollout.Verify = v1alpha1.VerifyNone
			s.conditions(1, u)
		}
	}
	least := func(n int32, then func(*conditionHarness)) func(*conditionHarness) {
		return func(s *conditionHarness) {
			s.f.Spec.Scaling.MinInstances = n
			then(s)
		}
	}
	// office has a window that is open at the time of the tests.
	office := func(then func(*conditionHarness)) func(*conditionHarness) {
		return func(s *conditionHarness) {
			s.f.Spec.Scaling.Windows = []v1alpha1.ScalingWindow{{Name: "office", Start: "0 5 * * *", Duration: v1alpha1.Duration{Duration: time.Hour}, MinInstances: 3}}
			then(s)
		}
	}
	refusedFor := func(reason string) func(*conditionHarness) {
		return func(s *conditionHarness) {
			good(s)
			s.deploy("")
			s.look.Refused = &Failure{reason, "why"}
		}
	}
	all := func(reason string) string {
		return fmt.Sprintf("Ready=False/%[1]s Accepted=False/%[1]s RevisionReady=False/%[1]s MinInstancesReady=False/%[1]s", reason)
	}
	failing := serving
	failing.Failure = &Failure{v1alpha1.ReasonOutOfMemory, "the function used more memory than its limit of 64Mi; its last log lines:\nloading"}
	withoutRoom := serving
	withoutRoom.NoRoom = "no node is ready"
	cutOff := serving
	cutOff.Unconfirmed = true
	for name, c := range map[string]struct {
		happens func(*conditionHarness)
		want    string
	}{
		"nobody tells of the first revision yet": {func(*conditionHarness) {},
			shown("Unknown/Verifying", "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"nobody tells of the first revision for long": {func(s *conditionHarness) { s.told(); s.now = s.now.Add(observeTimeout) },
			shown("Unknown/Unobserved", "Unknown/Verifying", "Unknown/Unobserved", "Reconciling=True/Verifying")},
		"an old revision that calls go to again": {func(s *conditionHarness) {
			update(idle)(s)
			s.told()
			s.now = s.now.Add(time.Hour)
			s.deploy("a:1")
			delete(s.look.Units, "f-00001")
		}, shown(started, started, enough)},
		"the first instance is being started": {first(starting),
			shown("Unknown/Verifying", "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"one start of good code, and none is wanted": {first(idle), shown(started, started, enough)},
		"broken code":                     {first(exits), shown("False/FunctionExited", "False/FunctionExited", enough, "Reconciling=True/Verifying")},
		"broken code after the deadline":  {late(first(exits)), shown("False/FunctionExited", "False/FunctionExited", enough, "Stalled=True/FunctionExited")},
		"slow code after the deadline":    {late(first(starting)), shown("Unknown/Verifying", "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"an update is being verified":     {update(starting), shown(started, "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"an update nobody tells of yet":   {func(s *conditionHarness) { update(starting)(s); delete(s.look.Units, "f-00002") }, shown(started, "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"a broken update":                 {update(exits), shown(started, "False/FunctionExited", enough, "Reconciling=True/Verifying")},
		"a broken update, overdue":        {late(update(exits)), shown(started, "False/FunctionExited", enough, "Stalled=True/FunctionExited")},
		"a broken update that was undone": {func(s *conditionHarness) { late(update(exits))(s); s.deploy("a:1"); s.conditions(1, serving) }, shown(started, started, enough)},
		"a broken update that was mended": {func(s *conditionHarness) {
			late(update(exits))(s)
			s.told()
			s.deploy("a:3")
			s.conditions(1, serving)
			s.conditions(3, starting)
		},
			shown(started, "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"an update that works":            {update(idle), shown(started, started, enough)},
		"an update without room":          {update(full), shown(started, "Unknown/VerificationDeferred", enough, "Reconciling=True/VerificationDeferred")},
		"an update without room, overdue": {late(update(full)), shown(started, "Unknown/VerificationDeferred", enough, "Reconciling=True/VerificationDeferred")},
		"an update in steps":              {stepping(serving), shown(started, started, enough, "Reconciling=True/Stepping")},
		"the new part of the calls fails": {func(s *conditionHarness) { stepping(serving)(s); s.told(); s.conditions(2, exits) }, shown("False/FunctionExited", started, enough, "Reconciling=True/Stepping")},
		"a scheduler behind": {func(s *conditionHarness) {
			good(s)
			s.change(func(spec *v1alpha1.FunctionSpec) { spec.Calls.MaxInFlight = 7 })
		}, shown(started, started, enough, "Reconciling=True/SchedulerBehind")},
		"the cluster is full":                {first(full), shown("False/NoCapacity", "Unknown/VerificationDeferred", enough)},
		"the cluster is full for long":       {late(first(full)), shown("False/NoCapacity", "Unknown/VerificationDeferred", enough)},
		"it was, and fills up":               {func(s *conditionHarness) { good(s); s.conditions(1, full) }, shown("False/NoCapacity", started, enough)},
		"scaled to none":                     {func(s *conditionHarness) { good(s); s.conditions(1, idle) }, shown(started, started, enough)},
		"scaled to none, by another one":     {func(s *conditionHarness) { good(s); s.conditions(1, starting) }, shown(started, started, enough)},
		"good code that fails now":           {func(s *conditionHarness) { good(s); s.conditions(1, exits) }, shown("False/FunctionExited", started, enough)},
		"some starts fail":                   {first(failing), shown(started, started, enough, "InstancesFailing=True/OutOfMemory")},
		"no room for more":                   {first(withoutRoom), shown(started, started, enough, "InstancesFailing=True/NoCapacity")},
		"etcd is away":                       {first(cutOff), shown(started, started, "Unknown/Unconfirmed")},
		"a floor":                            {least(2, first(serving)), shown(started, started, enough)},
		"a floor that is being reached":      {least(3, first(serving)), shown(started, started, "False/Creating")},
		"a floor that a window sets":         {office(first(serving)), shown(started, started, "False/Creating")},
		"a floor that a window no more sets": {func(s *conditionHarness) { office(first(serving))(s); s.told(); s.now = s.now.Add(s.look.Plan.Again) }, shown(started, started, enough)},
		"a floor without room":               {least(3, first(withoutRoom)), shown(started, started, "False/NoCapacity", "InstancesFailing=True/NoCapacity")},
		"a floor that cannot be reached":     {least(3, first(failing)), shown(started, started, "False/OutOfMemory", "InstancesFailing=True/OutOfMemory")},
		"no proof wanted":                    {unverified(starting), shown("True/NotVerified", "True/NotVerified", enough)},
		"no proof wanted, but there is one":  {unverified(idle), shown(started, started, enough)},
		"no proof wanted, and broken":        {late(unverified(exits)), shown("False/FunctionExited", "False/FunctionExited", enough)},
		"the scheduler is gone":              {func(s *conditionHarness) { good(s); clear(s.look.Units); s.now = s.now.Add(observeTimeout) }, shown("Unknown/Unobserved", started, "Unknown/Unobserved")},
		"the observer has just started": {func(s *conditionHarness) {
			good(s)
			clear(s.look.Units)
			s.look.Settling = true
			s.now = s.now.Add(observeTimeout)
		}, shown(started, started, enough)},
		"it starts, and the function is new": {func(s *conditionHarness) { s.look.Settling = true },
			shown("Unknown/Verifying", "Unknown/Verifying", enough, "Reconciling=True/Verifying")},
		"traffic names what does not exist": {func(s *conditionHarness) {
			good(s)
			s.f.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100, RevisionName: "f-00007"}}
		}, shown(started, started, enough, "Stalled=True/RevisionMissing")},
		"traffic names one that was never proven": {func(s *conditionHarness) {
			update(starting)(s)
			s.told()
			s.deploy("a:3")
			s.f.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100, RevisionName: "f-00002"}}
			s.conditions(2, starting)
			s.conditions(3, idle)
		}, shown("Unknown/NotVerified", started, enough)},
		"a first revision that the API server refuses": {func(s *conditionHarness) { s.look.NotCreated = &Failure{v1alpha1.ReasonRevisionRefused, "why"} },
			shown("False/RevisionRefused", "False/RevisionRefused", "False/RevisionRefused", "Stalled=True/RevisionRefused")},
		"an update that it refuses": {func(s *conditionHarness) {
			update(starting)(s)
			s.look.NotCreated = &Failure{v1alpha1.ReasonRevisionRefused, "why"}
		}, shown(started, "False/RevisionRefused", enough, "Stalled=True/RevisionRefused")},
		"an update that it cannot create now": {func(s *conditionHarness) {
			update(starting)(s)
			s.look.NotCreated = &Failure{v1alpha1.ReasonPending, "why"}
		}, shown(started, "Unknown/Pending", enough, "Reconciling=True/Verifying")},
		"an invalid spec": {func(s *conditionHarness) { s.look.Refused = &Failure{v1alpha1.ReasonInvalid, "why"} }, all("Invalid") + " Stalled=True/Invalid"},
		"an invalid spec of a function that serves": {refusedFor(v1alpha1.ReasonInvalid),
			"Ready=True/Started Accepted=False/Invalid RevisionReady=False/Invalid MinInstancesReady=True/EnoughInstances Stalled=True/Invalid"},
		"a runtime that is deleted": {refusedFor(v1alpha1.ReasonRuntimeNotFound),
			"Ready=True/Started Accepted=False/RuntimeNotFound RevisionReady=False/RuntimeNotFound MinInstancesReady=True/EnoughInstances Stalled=True/RuntimeNotFound"},
		"a runtime that is deleted, when instances fail": {func(s *conditionHarness) {
			refusedFor(v1alpha1.ReasonRuntimeNotFound)(s)
			s.conditions(1, failing)
		}, "Ready=True/Started Accepted=False/RuntimeNotFound RevisionReady=False/RuntimeNotFound MinInstancesReady=True/EnoughInstances Stalled=True/RuntimeNotFound InstancesFailing=True/OutOfMemory"},
		"it is being deleted": {func(s *conditionHarness) { late(update(exits))(s); s.told(); s.f.DeletionTimestamp = &draining }, all("Draining")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newConditionHarness()
			c.happens(s)
			if diff := cmp.Diff(c.want, brief(s.told())); diff != "" {
				t.Error(diff)
			}
			for _, c := range s.f.Status.Conditions {
				if c.ObservedGeneration != s.f.Status.ObservedGeneration {
					t.Errorf("%s is about generation %d, the status about %d", c.Type, c.ObservedGeneration, s.f.Status.ObservedGeneration)
				}
			}
		})
	}
}

func TestBeforeItsFirstRevisionAFunctionIsPending(t *testing.T) {
	s := newConditionHarness()
	plan, own := Advance(s.now, s.f, nil, nil)
	got, _ := Conditions(ConditionInput{Now: s.now, Function: s.f, Plan: plan, Revisions: own})
	if diff := cmp.Diff(shown("Unknown/Pending", "Unknown/Pending", "Unknown/Pending", "Reconciling=True/Verifying"), brief(got)); diff != "" {
		t.Error(diff)
	}
}

func TestConditionsSayTheLastWordsOfTheFunction(t *testing.T) {
	s := newConditionHarness()
	s.conditions(1, exits)
	for _, c := range s.told() {
		if c.Status == metav1.ConditionFalse && !strings.Contains(c.Message, "ImportError") {
			t.Errorf("%s says %q", c.Type, c.Message)
		}
	}
	if got := s.look.Revisions[0].Status.Conditions[0]; got.Status != metav1.ConditionFalse || !strings.Contains(got.Message, "ImportError") {
		t.Errorf("the revision says %+v", got)
	}
	long := exits
	for _, before := range []string{"", "x"} {
		long.Failure = &Failure{v1alpha1.ReasonFunctionExited, "it exited" + before + strings.Repeat("\xffé", maxMessage) + "ImportError"}
		s.conditions(1, long)
		ready := s.told()[0]
		if len(ready.Message) > maxMessage || !utf8.ValidString(ready.Message) {
			t.Errorf("it says %d bytes, valid is %t", len(ready.Message), utf8.ValidString(ready.Message))
		}
		if !strings.HasPrefix(ready.Message, "f-00001: it exited") || !strings.HasSuffix(ready.Message, "ImportError") {
			t.Errorf("of a long text it says %q", ready.Message)
		}
	}
}

// Tools that wait for a generation must not take what is said of the one before for an
// answer.
func TestTheStatusIsAboutWhatSchedulersHaveTakenUp(t *testing.T) {
	s := newConditionHarness()
	s.conditions(1, serving)
	s.told()
	s.deploy("a:2")
	if s.told(); s.f.Status.ObservedGeneration != 1 {
		t.Errorf("it is about generation %d before a scheduler knows of it", s.f.Status.ObservedGeneration)
	}
	s.conditions(1, serving)
	if s.told(); s.f.Status.ObservedGeneration != 2 {
		t.Errorf("it is about generation %d", s.f.Status.ObservedGeneration)
	}
}

func TestATransitionHasItsTime(t *testing.T) {
	s := newConditionHarness()
	s.conditions(1, serving)
	s.told()
	begun := s.now
	s.now = s.now.Add(time.Hour)
	s.conditions(1, exits)
	for _, c := range s.told() {
		want := begun
		if c.Type == v1alpha1.ConditionReady {
			want = s.now
		}
		if !c.LastTransitionTime.Time.Equal(want) {
			t.Errorf("%s has changed at %v, want %v", c.Type, c.LastTransitionTime, want)
		}
	}
}

func TestTheFirstConditionHasTheTimeOfWhoSaysIt(t *testing.T) {
	s := newConditionHarness()
	s.f.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending, LastTransitionTime: metav1.Unix(0, 0),
	}}
	if got := s.told()[0]; got.Type != v1alpha1.ConditionReady || !got.LastTransitionTime.Time.Equal(s.now) {
		t.Errorf("got %+v", got)
	}
}

func TestRevisionsRememberWhatWasSeenOfThem(t *testing.T) {
	s := newConditionHarness()
	s.conditions(1, exits)
	s.told()
	clear(s.look.Units)
	s.told()
	if got := brief(s.revisions[0].Status.Conditions); got != "Ready=False/FunctionExited Active=True/Serving" {
		t.Errorf("when nobody tells of a failure any more, it says %s", got)
	}
	s.conditions(1, idle)
	s.told()
	s.conditions(1, exits)
	s.told()
	if got := brief(s.revisions[0].Status.Conditions); got != "Ready=True/Started Active=True/Serving" {
		t.Errorf("a proof that failed later: %s", got)
	}
	full := s.revisions[0].Status.FullTrafficTime
	if !full.Time.Equal(s.now) {
		t.Errorf("all calls went to it at %v", full)
	}
	s.deploy("a:2")
	s.conditions(2, idle)
	s.now = s.now.Add(time.Hour)
	s.told()
	if got := brief(s.revisions[0].Status.Conditions); got != "Ready=True/Started Active=False/NoCalls" {
		t.Errorf("without calls: %s", got)
	}
	if since := s.revisions[0].InactiveSince(); !since.Time.Equal(s.now) {
		t.Errorf("without calls since %v", since)
	}
	if s.revisions[0].Status.FullTrafficTime != full {
		t.Error("the time of all calls has changed")
	}
}

func TestAdvanceChangesNothingThatItIsGiven(t *testing.T) {
	s := newConditionHarness()
	s.told()
	before := s.revisions[0].DeepCopy()
	s.conditions(1, serving)
	Advance(s.now.Add(time.Hour), s.f, s.revisions, s.look.Units)
	if diff := cmp.Diff(before, s.revisions[0]); diff != "" {
		t.Error(diff)
	}
}
