package controller

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/pkg/catalog/kube"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// given is a function that was deployed a minute ago and is called, whose revision is
// proven, and what change makes of it.
func given(change func(*input)) input {
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "example.com/a:1"}}}
	f.Name, f.Namespace, f.UID, f.Generation = "f", "team", "uid-f", 3
	f.Finalizers = []string{wellknown.FinalizerDrain}
	f.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	in := input{
		now: now, function: f, hosts: address.Rules{URLs: urls("https://fn.example.com/", "")},
		revisions: []*v1alpha1.FunctionRevision{revisionOf(f)},
		units:     map[string]facts{"f-00003": {generation: 3, created: 2, started: true}},
	}
	if change != nil {
		change(&in)
	}
	return in
}

// revisionOf is the revision of a function's template, as the API server has it.
func revisionOf(f *v1alpha1.Function) *v1alpha1.FunctionRevision {
	f = f.DeepCopy()
	v1alpha1.Default(f)
	r := v1alpha1.NewRevision(f)
	r.UID, r.Generation = types.UID("uid-"+r.Name), 1
	return r
}

// observed changes what the scheduler tells of the revision.
func observed(change func(*facts)) func(*input) {
	return func(in *input) {
		f := in.units["f-00003"]
		change(&f)
		in.units["f-00003"] = f
	}
}

// carriedOut is in, once everything that plan wants has been written.
func carriedOut(in input) input {
	in.written = writes{}
	for range 3 {
		out := plan(in)
		in.function, in.revisions = in.function.DeepCopy(), slices.Clone(in.revisions)
		if out.status != nil {
			in.function.Status = *out.status
		}
		for _, written := range slices.Concat(out.revisions, out.scales) {
			i := slices.IndexFunc(in.revisions, func(r *v1alpha1.FunctionRevision) bool { return r.Name == written.Name })
			in.revisions[i] = written
		}
		in.events = nil
	}
	return in
}

// changed is in, once it was carried out, and change has come.
func changed(in input, change func(*input)) input {
	in = carriedOut(in)
	in.units = maps.Clone(in.units)
	if change != nil {
		change(&in)
	}
	return in
}

// statusIn is the status that plan wants.
func statusIn(in input) v1alpha1.FunctionStatus { return carriedOut(in).function.Status }

// brief shows conditions as "Ready=True/Accepted".
func brief(conditions []metav1.Condition) string {
	var words []string
	for _, c := range conditions {
		words = append(words, c.Type+"="+string(c.Status)+"/"+c.Reason)
	}
	return strings.Join(words, " ")
}

func TestStatusSaysWhatIsObserved(t *testing.T) {
	deleted := metav1.NewTime(now.Add(-time.Second))
	const fine = "Ready=True/Started Accepted=True/Accepted RevisionReady=True/Started MinInstancesReady=True/EnoughInstances"
	all := func(reason string) string {
		return strings.ReplaceAll("Ready=False/R Accepted=False/R RevisionReady=False/R MinInstancesReady=False/R", "/R", "/"+reason)
	}
	fails := func(why problem) func(*input) {
		return observed(func(f *facts) { f.created, f.started, f.problem = 0, false, why })
	}
	failing := func(reason string) string {
		return strings.ReplaceAll("Ready=False/R Accepted=True/Accepted RevisionReady=False/R MinInstancesReady=True/EnoughInstances Reconciling=True/Verifying", "/R", "/"+reason)
	}
	for name, c := range map[string]struct {
		change func(*input)
		want   string
		// ready is a part of the message of the condition Ready.
		ready string
	}{
		"nothing special": {nil, fine, "calls go to f-00003"},
		"an image that cannot be pulled": {fails(problem{v1alpha1.ReasonImagePullFailed, "not found"}),
			failing("ImagePullFailed"), "image example.com/a:1: not found"},
		"an image whose name is in the message": {fails(problem{v1alpha1.ReasonImagePullFailed, `"example.com/a:1": not found`}),
			failing("ImagePullFailed"), `"example.com/a:1": not found`},
		"a problem without a reason": {fails(problem{reason: "no reason!"}), failing("StartFailed"), "could not start"},
		"a problem while instances are there": {observed(func(f *facts) { f.problem = problem{v1alpha1.ReasonOutOfMemory, "used 65Mi"} }),
			fine + " InstancesFailing=True/OutOfMemory", "calls go to"},
		"a minimum on its way": {func(in *input) { in.function.Spec.Scaling.MinInstances = 3 },
			strings.Replace(fine, "True/EnoughInstances", "False/Creating", 1), "calls go to"},
		"etcd is away": {observed(func(f *facts) { f.unconfirmed = true }),
			strings.Replace(fine, "True/EnoughInstances", "Unknown/Unconfirmed", 1), "calls go to"},
		"a change that has not arrived": {observed(func(f *facts) { f.generation = 2 }),
			fine + " Reconciling=True/SchedulerBehind", "calls go to"},
		"a runtime that is missing": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "ruby"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}}
		}, all("RuntimeNotFound") + " Stalled=True/RuntimeNotFound", `ClusterRuntime "ruby" does not exist; create it`},
		"a runtime without its version": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "python3"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}}
			in.runtimes = []v1alpha1.RuntimeName{"python3.13", "nodejs22.x"}
		}, all("RuntimeNotFound") + " Stalled=True/RuntimeNotFound", `lists, such as python3.13: nodejs22.x, python3.13`},
		"a runtime that is there": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "ruby"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}}
			in.runtime = &v1alpha1.ClusterRuntime{}
			in.revisions = []*v1alpha1.FunctionRevision{revisionOf(in.function)}
		}, fine, "calls go to"},
		"what no schema sees": {func(in *input) { in.function.Spec.Template.Args = []string{"\x00"} },
			all("Invalid") + " Stalled=True/Invalid", `spec.template.args[0]: Invalid value: "\x00": must not contain a NUL byte; remove it`},
		"what a cluster cannot run": {func(in *input) {
			in.function.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{"x"}}}
		}, all("Invalid") + " Stalled=True/Invalid", "add image:"},
		"a function that is being deleted": {func(in *input) { in.function.DeletionTimestamp = &deleted },
			all("Draining"), "is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusIn(given(c.change))
			if diff := cmp.Diff(c.want, brief(status.Conditions)); diff != "" {
				t.Error(diff)
			}
			if got := status.Conditions[0].Message; !strings.Contains(got, c.ready) {
				t.Errorf("Ready says %q, want %q in it", got, c.ready)
			}
			for _, c := range status.Conditions {
				if c.ObservedGeneration != status.ObservedGeneration {
					t.Errorf("%s is about generation %d, the status about %d", c.Type, c.ObservedGeneration, status.ObservedGeneration)
				}
			}
		})
	}
}

// updated is a function whose second template is being proven, while its first one
// serves.
func updated(change func(*input)) input {
	in := carriedOut(given(nil))
	in.now = now.Add(time.Minute)
	in.function = in.function.DeepCopy()
	in.function.Generation, in.function.Spec.Template.Image = 4, "example.com/a:2"
	in.revisions = append(in.revisions, revisionOf(in.function))
	in.units = map[string]facts{
		"f-00003": {generation: 4, created: 2, waiting: true, started: true},
		"f-00004": {generation: 4, creating: 1},
	}
	if change != nil {
		change(&in)
	}
	return in
}

func TestStatusCountsTheUnits(t *testing.T) {
	status := statusIn(updated(func(in *input) {
		in.units["f-00004"] = facts{generation: 4, creating: 1, created: 1}
	}))
	status.Conditions = nil
	since := metav1.NewTime(now.Add(time.Minute)).Rfc3339Copy()
	want := v1alpha1.FunctionStatus{
		ObservedGeneration:        4,
		LatestCreatedRevisionName: "f-00004", LatestReadyRevisionName: "f-00003",
		Traffic:   []v1alpha1.TrafficStatus{{RevisionName: "f-00003", Weight: 100}},
		Rollout:   v1alpha1.RolloutStatus{RevisionName: "f-00004", StableRevisionName: "f-00003", Since: since},
		Instances: v1alpha1.InstanceCounts{Ready: 3, Desired: 4},
		URL:       "https://fn.example.com/function/f.team",
		Selector:  "windlass.dev/function-uid=uid-f",
	}
	if diff := cmp.Diff(want, status); diff != "" {
		t.Error(diff)
	}
}

func TestRevisionsAreMadeBeforeAnythingElse(t *testing.T) {
	out := plan(given(func(in *input) { in.revisions, in.units = nil, nil }))
	if out.create == nil || out.create.Name != "f-00003" || out.create.Spec.Template.Image != "example.com/a:1" {
		t.Fatalf("got %+v", out.create)
	}
	if out.status != nil || out.revisions != nil || out.remove != nil {
		t.Errorf("and then %+v", out)
	}
	refused := plan(given(func(in *input) {
		in.revisions, in.units = nil, nil
		in.function.Spec.Template.Args = []string{"\x00"}
	}))
	if refused.create != nil || refused.status == nil {
		t.Errorf("of what is invalid: %+v", refused)
	}
}

// The generation does not count annotations: the name of such a revision would be taken, and nothing else would be
// planned.
func TestTheStampOfLocalCodeMakesNoRevision(t *testing.T) {
	in := changed(given(nil), observed(func(f *facts) { f.created = 7 }))
	in.function.Annotations = map[string]string{v1alpha1.AnnotationCodeStamp: "1a2b"}
	if _, err := (kube.Config{}).Transform()(in.function); err != nil {
		t.Fatal(err)
	}
	if out := plan(in); out.create != nil || out.status == nil {
		t.Errorf("planned is %+v", out)
	}
}

func TestAProtocolThatComesFromARuntimeCannotChange(t *testing.T) {
	const refused = `spec.template.protocol: Invalid value: "HTTP": cannot change from LambdaRuntime, because calls that wait were made for the old one; make a new function, or delete this one first`
	of := func(runtime v1alpha1.RuntimeName, protocol v1alpha1.Protocol) v1alpha1.FunctionTemplate {
		return v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: runtime}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}, Protocol: protocol}
	}
	runtimes := map[v1alpha1.RuntimeName]*v1alpha1.ClusterRuntime{"web": {}, "lambda": {}}
	runtimes["web"].Spec.Protocol, runtimes["lambda"].Spec.Protocol = v1alpha1.ProtocolHTTP, v1alpha1.ProtocolLambdaRuntime
	for name, c := range map[string]struct {
		before, after v1alpha1.FunctionTemplate
		create        bool
		refused       string
	}{
		"to a runtime of HTTP":                 {of("lambda", ""), of("web", ""), false, refused},
		"to the other one, in words":           {of("lambda", ""), of("lambda", v1alpha1.ProtocolHTTP), false, refused},
		"HTTP, said aloud":                     {of("web", ""), of("web", v1alpha1.ProtocolHTTP), false, ""},
		"an image, and then a runtime of HTTP": {v1alpha1.FunctionTemplate{Image: "a"}, of("web", ""), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(nil)
			in.function.Spec.Template, in.runtime = c.before, runtimes[c.before.RuntimeRef.Name]
			complete := in.function.DeepCopy()
			v1alpha1.DefaultFor(complete, in.runtime)
			in.revisions = []*v1alpha1.FunctionRevision{revisionOf(complete)}
			in = changed(in, func(in *input) {
				in.function = in.function.DeepCopy()
				in.function.Generation++
				in.function.Spec.Template, in.runtime = c.after, runtimes[c.after.RuntimeRef.Name]
			})
			if create := plan(in).create; (create != nil) != c.create {
				t.Fatalf("it makes the revision %v", create)
			}
			if c.create {
				return
			}
			if got := findCondition(statusIn(in).Conditions, v1alpha1.ConditionAccepted); (got.Status == metav1.ConditionFalse) != (c.refused != "") || c.refused != "" && got.Message != c.refused {
				t.Errorf("Accepted is %+v", got)
			}
		})
	}
}

// A revision that the API server does not create holds up nothing but itself.
func TestARevisionThatIsNotCreatedHoldsUpNothingElse(t *testing.T) {
	refused := rollout.Failure{Reason: v1alpha1.ReasonRevisionRefused, Message: "exceeded quota"}
	later := rollout.Failure{Reason: v1alpha1.ReasonPending, Message: "the webhook is down"}
	first := func(in *input) { in.revisions, in.units = nil, nil }
	update := func(in *input) {
		in.function.Generation, in.function.Spec.Template.Image = 4, "example.com/a:2"
		in.units["f-00003"] = facts{generation: 4, creating: 1, created: 7, started: true}
	}
	for name, c := range map[string]struct {
		before input
		why    rollout.Failure
		want   string
		events []functionEvent
	}{
		"the first one": {given(first), refused,
			"Ready=False/RevisionRefused Accepted=True/Accepted RevisionReady=False/RevisionRefused MinInstancesReady=False/RevisionRefused Stalled=True/RevisionRefused",
			[]functionEvent{{v1alpha1.ReasonRevisionRefused, "exceeded quota", true}}},
		"the first one for now": {given(first), later,
			"Ready=Unknown/Pending Accepted=True/Accepted RevisionReady=Unknown/Pending MinInstancesReady=Unknown/Pending Reconciling=True/Verifying", nil},
		"an update": {changed(given(nil), update), refused,
			"Ready=True/Started Accepted=True/Accepted RevisionReady=False/RevisionRefused MinInstancesReady=True/EnoughInstances Stalled=True/RevisionRefused",
			[]functionEvent{{v1alpha1.ReasonRevisionRefused, "exceeded quota", true}}},
		"an update for now": {changed(given(nil), update), later,
			"Ready=True/Started Accepted=True/Accepted RevisionReady=Unknown/Pending MinInstancesReady=True/EnoughInstances Reconciling=True/Verifying", nil},
	} {
		t.Run(name, func(t *testing.T) {
			in := c.before
			in.function, in.notCreated = in.function.DeepCopy(), &c.why
			out := plan(in)
			if out.create != nil || out.status == nil {
				t.Fatalf("planned is %+v", out)
			}
			if got := brief(out.status.Conditions); got != c.want || out.status.ObservedGeneration != in.function.Generation {
				t.Errorf("generation %d: %s\nwant %s", out.status.ObservedGeneration, got, c.want)
			}
			if got := findCondition(out.status.Conditions, v1alpha1.ConditionRevisionReady).Message; got != c.why.Message {
				t.Errorf("the message is %q", got)
			}
			if diff := cmp.Diff(c.events, out.changes, cmp.AllowUnexported(functionEvent{})); diff != "" {
				t.Error(diff)
			}
			if len(in.revisions) > 0 && (len(out.scales) != 1 || out.scales[0].Spec.Instances != 8 || len(out.revisions) != 1) {
				t.Errorf("the scales are %+v, the revisions %+v", out.scales, out.revisions)
			}
			if again := plan(carriedOut(in)); again.status != nil || again.scales != nil || again.revisions != nil {
				t.Errorf("what was carried out is written again: %+v", again)
			}
		})
	}
}

// Its revisions are served as before.
func TestARefusedFunctionSaysThatItIsServed(t *testing.T) {
	in := changed(given(nil), func(in *input) {
		in.function.Generation++
		in.function.Spec.Template.Args = []string{"\x00"}
	})
	const want = "Ready=True/Started Accepted=False/Invalid RevisionReady=False/Invalid MinInstancesReady=True/EnoughInstances Stalled=True/Invalid"
	status := statusIn(in)
	if got := brief(status.Conditions); got != want || status.ObservedGeneration != 4 || len(status.Traffic) != 1 {
		t.Errorf("generation %d, traffic %v: %s\nwant %s", status.ObservedGeneration, status.Traffic, got, want)
	}
	in.settling, in.units, in.now = true, nil, in.now.Add(time.Minute)
	if got := brief(statusIn(in).Conditions); !strings.HasPrefix(got, "Ready=True/Started Accepted=True/Accepted") {
		t.Errorf("while schedulers have yet to report: %s", got)
	}
}

func TestWhatAStatusSaysAboutARevisionThatIsNotCreated(t *testing.T) {
	resource := schema.GroupResource{Group: v1alpha1.GroupName, Resource: "functionrevisions"}
	for name, c := range map[string]struct {
		err    error
		reason string
	}{
		"a quota":                      {apierrors.NewForbidden(resource, "f-00001", errors.New("exceeded quota")), v1alpha1.ReasonRevisionRefused},
		"a template that is too large": {apierrors.NewRequestEntityTooLargeError("3 MiB"), v1alpha1.ReasonRevisionRefused},
		"a webhook that is down":       {apierrors.NewInternalError(errors.New("failed calling webhook")), v1alpha1.ReasonPending},
		"an API server that is busy":   {apierrors.NewTooManyRequests("later", 1), v1alpha1.ReasonPending},
		"a quota that has changed":     {apierrors.NewConflict(resource, "f-00001", errors.New("modified")), ""},
		"no answer":                    {errors.New("connection refused"), ""},
	} {
		var failed *creationError
		err := creationFailure("f-00001", c.err)
		if errors.As(err, &failed); !strings.Contains(err.Error(), c.err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if failed == nil && c.reason != "" || failed != nil && failed.Reason != c.reason {
			t.Errorf("%s: %+v", name, failed)
		}
		if apierrors.IsConflict(c.err) != apierrors.IsConflict(err) {
			t.Errorf("%s is no conflict any more: %v", name, err)
		}
	}
}

// about is what is said of a revision.
func about(r *v1alpha1.FunctionRevision) string {
	return fmt.Sprintf("%s %s full=%t ready=%d %s", r.Name, brief(r.Status.Conditions), !r.Status.FullTrafficTime.IsZero(), r.Status.Instances.Ready, r.Status.Selector)
}

func TestRevisionsSayWhatIsObserved(t *testing.T) {
	const (
		first   = "f-00003 Ready=True/Started Active=True/Serving full=true ready=2 windlass.dev/revision-uid=uid-f-00003"
		retired = "f-00003 Ready=True/Started Active=False/NoCalls full=true ready=2 windlass.dev/revision-uid=uid-f-00003"
	)
	for name, c := range map[string]struct {
		observed facts
		want     []string
	}{
		"it starts": {facts{generation: 4, creating: 1}, []string{first,
			"f-00004 Ready=Unknown/Verifying Active=False/NoCalls full=false ready=0 windlass.dev/revision-uid=uid-f-00004"}},
		"no room": {facts{generation: 4, noRoom: "no node is ready"}, []string{first,
			"f-00004 Ready=Unknown/VerificationDeferred Active=False/NoCalls full=false ready=0 windlass.dev/revision-uid=uid-f-00004"}},
		"it fails": {facts{generation: 4, problem: problem{v1alpha1.ReasonFunctionExited, "exit code 1"}}, []string{first,
			"f-00004 Ready=False/FunctionExited Active=False/NoCalls full=false ready=0 windlass.dev/revision-uid=uid-f-00004"}},
		"it has started": {facts{generation: 4, created: 1, started: true}, []string{retired,
			"f-00004 Ready=True/Started Active=True/Serving full=true ready=1 windlass.dev/revision-uid=uid-f-00004"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := carriedOut(updated(func(in *input) { in.units["f-00004"] = c.observed }))
			var got []string
			for _, r := range in.revisions {
				got = append(got, about(r))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if again := plan(in); again.revisions != nil || again.scales != nil || again.status != nil {
				t.Errorf("what was carried out is written again: %+v", again)
			}
		})
	}
}

// Whatever of a plan was carried out when the controller stops, the next one comes to the
// same end.
func TestAStopInBetweenIsMadeGood(t *testing.T) {
	start := updated(func(in *input) {
		in.units["f-00004"] = facts{generation: 4, created: 1, started: true}
		in.function.Spec.RevisionHistoryLimit = new(int32)
	})
	end := carriedOut(start)
	whole := plan(start)
	writes := len(whole.revisions) + 1
	if writes < 3 {
		t.Fatalf("the plan has only %d writes", writes)
	}
	for done := range writes {
		in := start
		in.revisions = slices.Clone(in.revisions)
		for _, written := range whole.revisions[:done] {
			i := slices.IndexFunc(in.revisions, func(r *v1alpha1.FunctionRevision) bool { return r.Name == written.Name })
			in.revisions[i] = written
		}
		in = carriedOut(in)
		if diff := cmp.Diff(end.function.Status, in.function.Status); diff != "" {
			t.Errorf("after %d writes (-whole +stopped):\n%s", done, diff)
		}
		if diff := cmp.Diff(end.revisions, in.revisions); diff != "" {
			t.Errorf("after %d writes (-whole +stopped):\n%s", done, diff)
		}
	}
}

// The revision says what is wanted of it as a scale, which disruption budgets go by.
func TestRevisionsSayHowManyInstancesAreWanted(t *testing.T) {
	in := carriedOut(given(observed(func(f *facts) { f.creating = 3 })))
	if got := in.revisions[0].Spec.Instances; got != 5 {
		t.Errorf("got %d", got)
	}
	in.units["f-00003"] = facts{generation: 3, creating: 1, created: 2, started: true}
	in.written.pace = pace{}.spend(now.Add(time.Second-writeInterval), counts)
	if out := plan(in); out.scales != nil || out.again != time.Second {
		t.Errorf("written too early: %v, again in %v", out.scales, out.again)
	}
	in.budgeted = true
	if out := plan(in); len(out.scales) != 1 || out.scales[0].Spec.Instances != 3 {
		t.Errorf("written too late for a disruption budget: %v", out.scales)
	}
	if out := plan(in); out.pace != in.written.pace {
		t.Error("a scale for a disruption budget delays what else changes")
	}
	in.budgeted = false
	in.now = now.Add(time.Second)
	if out := plan(in); len(out.scales) != 1 || out.scales[0].Spec.Instances != 3 {
		t.Errorf("got %v", out.scales)
	}
}

// The scheduler of one of two revisions may be away, or be heard of later than the other's.
func TestTheStatusKeepsTheInstancesOfARevisionThatNobodyReports(t *testing.T) {
	both := updated(func(in *input) {
		in.function.Spec.Traffic = []v1alpha1.TrafficTarget{{RevisionName: "f-00003", Weight: 50}, {RevisionName: "f-00004", Weight: 50}}
		in.units["f-00004"] = facts{generation: 4, created: 3, creating: 1, started: true}
	})
	for name, c := range map[string]struct {
		change func(*input)
		want   v1alpha1.InstanceCounts
	}{
		"it has pods": {func(in *input) { in.pods = []pod{{name: "p", revision: "uid-f-00003"}} }, v1alpha1.InstanceCounts{Ready: 5, Desired: 6}},
		"too early":   {func(in *input) { in.settling = true }, v1alpha1.InstanceCounts{Ready: 5, Desired: 6}},
		"it has none": {func(*input) {}, v1alpha1.InstanceCounts{Ready: 3, Desired: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			got := statusIn(changed(both, func(in *input) {
				delete(in.units, "f-00003")
				c.change(in)
			})).Instances
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Schedulers report units only, so the last report of a revision that is none any more may be
// of instances that have ended since.
func TestARevisionThatNobodyReportsHasNoInstancesOnceItsPodsAreGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*input)
		want   int32
	}{
		"nothing is left":   {nil, 0},
		"pods of others":    {func(in *input) { in.pods = []pod{{name: "p", revision: "uid-f-00004"}} }, 0},
		"a pod is there":    {func(in *input) { in.pods = []pod{{name: "p", revision: "uid-f-00003"}} }, 2},
		"too early to say":  {func(in *input) { in.settling = true }, 2},
		"it is reported of": {func(in *input) { in.units["f-00003"] = facts{generation: 4, created: 2} }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := carriedOut(changed(updated(func(in *input) {
				in.units["f-00004"] = facts{generation: 4, created: 1, started: true}
			}), func(in *input) {
				in.now = in.now.Add(time.Second)
				delete(in.units, "f-00003")
				if c.change != nil {
					c.change(in)
				}
			}))
			if r := in.revisions[0]; r.Status.Instances.Ready != c.want || r.Spec.Instances != c.want {
				t.Errorf("%d instances of %d, want %d", r.Status.Instances.Ready, r.Spec.Instances, c.want)
			}
			if r := in.revisions[1]; r.Status.Instances.Ready != 1 || r.Spec.Instances != 1 {
				t.Errorf("of the other revision %d instances of %d", r.Status.Instances.Ready, r.Spec.Instances)
			}
		})
	}
}

// Its instances finish their calls for up to its timeout. Kubernetes adds its scale to those of the
// revisions that have calls, so a scale of more than these would keep all pods from eviction.
func TestTheScaleOfWhatNobodyServesIsThePodsThatItHas(t *testing.T) {
	ends := []pod{
		{name: "runs", revision: "uid-f-00003"}, {name: "goes", revision: "uid-f-00003", deleting: true},
		{name: "ended", revision: "uid-f-00003", ended: now}, {name: "other", revision: "uid-f-00004"},
	}
	for name, in := range map[string]input{
		"a revision without calls": changed(updated(func(in *input) {
			in.units["f-00004"] = facts{generation: 4, created: 1, started: true}
		}), func(in *input) {
			in.revisions[0].Status.FullTrafficTime = metav1.Time{} // it is not kept for a return
			delete(in.units, "f-00003")
			in.pods = ends
		}),
		"a deleted function": changed(given(nil), func(in *input) {
			in.function.DeletionTimestamp = &metav1.Time{Time: now}
			in.pods = ends
		}),
		"one that schedulers have forgotten": changed(given(nil), func(in *input) {
			in.function.DeletionTimestamp = &metav1.Time{Time: now}
			in.units, in.pods = nil, ends
		}),
	} {
		t.Run(name, func(t *testing.T) {
			in.budgeted = true
			out := plan(in)
			if len(out.scales) != 1 || out.scales[0].Name != "f-00003" || out.scales[0].Spec.Instances != 1 {
				t.Fatalf("before the scale was %d, and the scales are %+v", in.revisions[0].Spec.Instances, out.scales)
			}
			if again := plan(carriedOut(in)); again.scales != nil {
				t.Errorf("what was carried out is written again: %+v", again.scales)
			}
		})
	}
}

// Schedulers go on serving the revisions of a function that is refused, and disruption budgets
// go by their scale.
func TestRevisionsOfARefusedFunctionSayHowManyInstancesAreWanted(t *testing.T) {
	for name, change := range map[string]func(*input){
		"what no schema sees": func(in *input) { in.function.Spec.Template.Args = []string{"\x00"} },
		"a missing runtime": func(in *input) {
			in.function.Spec.Template = v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "ruby"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := changed(given(nil), func(in *input) {
				in.units["f-00003"] = facts{generation: 3, creating: 1, created: 7, started: true}
				change(in)
			})
			out := plan(in)
			if out.revisions != nil || out.create != nil || out.remove != nil {
				t.Errorf("decided is %+v", out)
			}
			if len(out.scales) != 1 || out.scales[0].Spec.Instances != 8 {
				t.Fatalf("the scales are %+v", out.scales)
			}
			if again := plan(carriedOut(in)); again.scales != nil {
				t.Errorf("what was carried out is written again: %+v", again.scales)
			}
		})
	}
}

// That its scale was written is nothing to say of a revision, though it is a new generation.
func TestAChangeOfCountsIsOneRoundOfWrites(t *testing.T) {
	in := changed(given(nil), func(in *input) {
		in.now = now.Add(time.Hour)
		in.units["f-00003"] = facts{generation: 3, creating: 1, created: 4, started: true}
	})
	out := plan(in)
	if len(out.revisions) != 1 || len(out.scales) != 1 || out.status == nil {
		t.Fatalf("written are %d statuses and %d scales of revisions, and the function's %v", len(out.revisions), len(out.scales), out.status)
	}
	scaled := out.scales[0]
	scaled.Generation++ // as the API server does
	in.function.Status, in.revisions, in.now = *out.status, []*v1alpha1.FunctionRevision{scaled}, in.now.Add(time.Hour)
	if again := plan(in); again.revisions != nil || again.scales != nil || again.status != nil {
		t.Errorf("what was carried out is written again: %+v", again)
	}
}

func TestRevisionsGoOnceNothingIsLeftOfThem(t *testing.T) {
	surplus := func(change func(*input)) input {
		in := carriedOut(updated(func(in *input) {
			in.function.Spec.RevisionHistoryLimit = new(int32)
			in.units["f-00003"] = facts{generation: 4, started: true}
			in.units["f-00004"] = facts{generation: 4, created: 1, started: true}
		}))
		if change != nil {
			change(&in)
		}
		return in
	}
	for name, c := range map[string]struct {
		change func(*input)
		want   []string
	}{
		"nothing is left":    {nil, []string{"f-00003"}},
		"an instance":        {func(in *input) { in.units["f-00003"] = facts{created: 1} }, nil},
		"one that starts":    {func(in *input) { in.units["f-00003"] = facts{creating: 1} }, nil},
		"a call that waits":  {func(in *input) { in.units["f-00003"] = facts{waiting: true} }, nil},
		"a pod":              {func(in *input) { in.pods = []pod{{name: "p", revision: "uid-f-00003"}} }, nil},
		"a pod of the other": {func(in *input) { in.pods = []pod{{name: "p", revision: "uid-f-00004"}} }, []string{"f-00003"}},
		"nobody tells of it": {func(in *input) { delete(in.units, "f-00003") }, []string{"f-00003"}},
		"nobody tells of it yet": {func(in *input) {
			delete(in.units, "f-00003")
			in.settling = true
		}, nil},
		"a history with room": {func(in *input) { in.function.Spec.RevisionHistoryLimit = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, r := range plan(surplus(c.change)).remove {
				got = append(got, r.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestURLLeavesOutTheDefaultNamespace(t *testing.T) {
	in := given(func(in *input) { in.function.Namespace = "default" })
	if got, want := statusIn(in).URL, "https://fn.example.com/function/f"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	in.hosts.URLs = urls("", "")
	if got := statusIn(in).URL; got != "" {
		t.Errorf("got %s without a gateway", got)
	}
}

// urls are those below a URL of the gateways and a domain of functions.
func urls(base, domain string) address.URLs {
	hosts, err := address.NewHosts(domain, address.DefaultTemplate)
	if err != nil {
		panic(err)
	}
	u, err := address.NewURLs(base, hosts)
	if err != nil {
		panic(err)
	}
	return u
}

func TestAFunctionAndItsTagsHaveURLs(t *testing.T) {
	long := strings.Repeat("t", 55)
	in := given(func(in *input) {
		in.hosts.URLs = urls("https://example.com", "fn.example.com")
		in.function.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100}, {Tag: "next"}, {Tag: long}}
	})
	status := statusIn(in)
	if got, want := status.URL, "https://f--team.fn.example.com"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got := map[string]string{}
	for _, part := range status.Traffic {
		got[part.Tag] = part.URL
	}
	want := map[string]string{
		"live": "https://live---f--team.fn.example.com", "next": "https://next---f--team.fn.example.com", long: "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// Nobody's calls have moved when the domain has.
	in.function.Status = status
	in.hosts.URLs = urls("https://example.com", "fn.example.org")
	out := plan(in)
	if out.status == nil || out.status.Traffic[0].URL != "https://live---f--team.fn.example.org" {
		t.Errorf("the status is not written again: %+v", out.status)
	}
	for _, e := range out.changes {
		if e.reason == reasonTrafficMoved {
			t.Errorf("told %s", e.message)
		}
	}
}

// What was said is not unsaid only because the controller, or the function's
// scheduler, starts again.
func TestStatusStaysWhileSchedulersSettle(t *testing.T) {
	in := changed(given(nil), func(in *input) {
		in.now = now.Add(time.Hour)
		in.units, in.settling = nil, true
	})
	if out := plan(in); out.status != nil || out.revisions != nil {
		t.Errorf("the controller starts, and says %+v", out)
	}
	in.settling = false
	status := statusIn(in)
	if got := brief(status.Conditions[:1]); got != "Ready=Unknown/Unobserved" {
		t.Errorf("later it is %s", got)
	}
	if status.Instances.Ready != 2 {
		t.Error("the last known numbers are gone")
	}
}

func TestTransitionTimeIsThatOfTheTransition(t *testing.T) {
	status := statusIn(changed(given(nil), func(in *input) {
		in.now = now.Add(time.Hour)
		in.function.Spec.Scaling.MinInstances = 3
	}))
	if got := findCondition(status.Conditions, v1alpha1.ConditionReady).LastTransitionTime; !got.Time.Equal(now) {
		t.Errorf("Ready has not changed, but since %v", got)
	}
	if got := findCondition(status.Conditions, v1alpha1.ConditionMinInstancesReady).LastTransitionTime; !got.Time.Equal(now.Add(time.Hour)) {
		t.Errorf("MinInstancesReady has changed, but not since %v", got)
	}
}

func TestStatusIsWrittenAtMeasuredPace(t *testing.T) {
	count := observed(func(f *facts) { f.created++ })
	change := func(in *input) { in.function.Spec.Scaling.MinInstances = 3 }
	taken := func(in *input) {
		in.function.Generation = 4
		observed(func(f *facts) { f.generation = 4 })(in)
	}
	moved := func(in *input) {
		in.function.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100}}
	}
	for name, c := range map[string]struct {
		change func(*input)
		ago    time.Duration
		// wait is 0 if it is written at once.
		wait time.Duration
	}{
		"numbers after a pause":     {count, writeInterval, 0},
		"numbers at once":           {count, 500 * time.Millisecond, writeInterval - 500*time.Millisecond},
		"a condition after a pause": {change, minWritePause, 0},
		"a condition at once":       {change, 300 * time.Millisecond, minWritePause - 300*time.Millisecond},
		"a generation at once":      {taken, 300 * time.Millisecond, minWritePause - 300*time.Millisecond},
		"where calls go":            {moved, time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := changed(given(nil), c.change)
			in.written.function, in.written.pace = now.Add(-c.ago), pace{}.spend(now.Add(-c.ago), counts)
			out := plan(in)
			if written := out.status != nil; written != (c.wait == 0) {
				t.Errorf("written is %t", written)
			}
			if out.again != c.wait {
				t.Errorf("again in %v, want %v", out.again, c.wait)
			}
		})
	}
	if out := plan(carriedOut(given(nil))); out.status != nil || out.revisions != nil || out.again != 0 {
		t.Errorf("nothing has changed, but %+v", out)
	}
}

// That all calls go to a revision decides that it takes no steps any more.
func TestTheLastStepIsWrittenAtOnce(t *testing.T) {
	in := carriedOut(updated(func(in *input) {
		in.units["f-00004"] = facts{generation: 4, created: 1, started: true}
		in.function.Spec.Rollout.Strategy = v1alpha1.RolloutSteps
		in.function.Spec.Rollout.Steps = []v1alpha1.RolloutStep{{Weight: 10, Hold: v1alpha1.Duration{Duration: time.Minute}}}
	}))
	if out := plan(in); out.again != time.Minute {
		t.Errorf("it is looked at again in %v", out.again)
	}
	in.now = in.now.Add(time.Minute)
	in.written = writes{function: in.now, revisions: map[string]time.Time{"f-00003": in.now, "f-00004": in.now}}
	out := plan(in)
	if len(out.revisions) != 2 || out.revisions[1].Status.FullTrafficTime.IsZero() || out.status == nil {
		t.Errorf("not all is written: %+v", out)
	}
}

func TestRevisionsAreWrittenAtMeasuredPace(t *testing.T) {
	unproven := func(f *facts) { f.created, f.started, f.problem = 0, false, problem{"OutOfMemory", "65Mi"} }
	proven := observed(func(f *facts) { f.started, f.problem = true, problem{} })
	another := observed(func(f *facts) { f.problem = problem{"OutOfMemory", "66Mi"} })
	count := observed(func(f *facts) { f.created = 7 })
	for name, c := range map[string]struct {
		before func(*facts)
		change func(*input)
		ago    time.Duration
		wait   time.Duration
	}{
		"a proof":                {unproven, proven, time.Millisecond, 0},
		"another failure":        {unproven, another, 400 * time.Millisecond, minWritePause - 400*time.Millisecond},
		"another failure, later": {unproven, another, minWritePause, 0},
		"numbers":                {func(*facts) {}, count, time.Second, writeInterval - time.Second},
		"numbers after a pause":  {func(*facts) {}, count, writeInterval, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := changed(given(observed(c.before)), c.change)
			last := map[string]time.Time{"f-00003": now.Add(-c.ago)}
			in.written = writes{revisions: last, pace: pace{}.spend(now.Add(-c.ago), counts)}
			out := plan(in)
			if written := out.revisions != nil; written != (c.wait == 0) {
				t.Errorf("written is %t", written)
			}
			if c.wait > 0 && out.again != c.wait {
				t.Errorf("again in %v, want %v", out.again, c.wait)
			}
		})
	}
}

func TestFinalizerComesFirstAndGoesLast(t *testing.T) {
	ago := func(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }
	for name, c := range map[string]struct {
		change func(*input)
		want   finalizerChange
	}{
		"a new function":  {func(in *input) { in.function.Finalizers = nil }, finalizerAdd},
		"one that has it": {nil, finalizerKeep},
		"one that ends without it": {func(in *input) {
			in.function.Finalizers, in.function.DeletionTimestamp = []string{"other"}, ago(0)
		}, finalizerKeep},
		"instances that finish": {func(in *input) {
			in.function.DeletionTimestamp, in.pods = ago(0), []pod{{name: "p"}}
		}, finalizerKeep},
		"a pod that is going": {func(in *input) {
			in.function.DeletionTimestamp, in.units, in.pods = ago(time.Hour), nil, []pod{{name: "p", deleting: true}}
		}, finalizerKeep},
		"an instance that only the scheduler sees": {func(in *input) { in.function.DeletionTimestamp = ago(0) }, finalizerKeep},
		"such an instance after the time to drain": {func(in *input) { in.function.DeletionTimestamp = ago(time.Hour) }, finalizerRemove},
		"no instance": {func(in *input) {
			in.function.DeletionTimestamp, in.units = ago(0), map[string]facts{"f-00003": {}}
		}, finalizerRemove},
		"an instance of an older revision": {func(in *input) {
			in.function.DeletionTimestamp, in.units = ago(0), map[string]facts{"f-00002": {creating: 1}, "f-00003": {}}
		}, finalizerKeep},
		"no instance and no scheduler": {func(in *input) { in.function.DeletionTimestamp, in.units = ago(0), nil }, finalizerRemove},
	} {
		t.Run(name, func(t *testing.T) {
			out := plan(given(c.change))
			if out.finalizer != c.want {
				t.Errorf("got %d, want %d", out.finalizer, c.want)
			}
			if c.want == finalizerRemove {
				want := []functionEvent{{reason: reasonDrained, message: "the last instance is gone"}}
				if diff := cmp.Diff(want, out.changes, cmp.AllowUnexported(functionEvent{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

// Nothing may happen until then: a scheduler that is gone for good reports nothing any more.
func TestADeletedFunctionWithoutPodsIsLookedAtAtItsDeadline(t *testing.T) {
	in := changed(given(nil), func(in *input) {
		in.function.DeletionTimestamp = &metav1.Time{Time: now.Add(-time.Second)}
		in.function.Spec.Template.Timeout.Duration = 10 * time.Second
	})
	in = carriedOut(in)
	out := plan(in)
	if out.finalizer != finalizerKeep || out.again <= 0 {
		t.Fatalf("the finalizer is changed by %d; planned again in %v", out.finalizer, out.again)
	}
	in.now = in.now.Add(out.again)
	if deadline := now.Add(39 * time.Second); in.now.Before(deadline) {
		t.Errorf("it is planned again %v too early", deadline.Sub(in.now))
	}
	if out = plan(in); out.finalizer != finalizerRemove {
		t.Errorf("at the deadline the finalizer is changed by %d", out.finalizer)
	}
}

// The function's author may have shortened the timeout before deleting it.
func TestPodsOfADeletedFunctionHaveTheTimeoutOfTheirRevision(t *testing.T) {
	in := updated(func(in *input) {
		in.revisions[0].Spec.Template.Timeout.Duration = 12 * time.Hour
		in.revisions[1].Spec.Template.Timeout.Duration = 10 * time.Second
		in.function.Spec.Template.Timeout.Duration = 10 * time.Second
		in.function.DeletionTimestamp = &metav1.Time{Time: now}
		in.pods = []pod{{name: "old", revision: in.revisions[0].UID}, {name: "new", revision: in.revisions[1].UID}}
	})
	for after, want := range map[time.Duration][]podDeletion{
		39 * time.Second:              nil,
		40 * time.Second:              {{"new", drainTimedOut}},
		12*time.Hour + 30*time.Second: {{"old", drainTimedOut}, {"new", drainTimedOut}},
	} {
		in.now = now.Add(after)
		if diff := cmp.Diff(want, plan(in).deletePods, cmp.AllowUnexported(podDeletion{})); diff != "" {
			t.Errorf("after %v: %s", after, diff)
		}
	}
}

func TestPodsThatMustGo(t *testing.T) {
	deletedAgo := func(d time.Duration) func(*input) {
		return func(in *input) {
			in.function.DeletionTimestamp = &metav1.Time{Time: now.Add(-d)}
			in.function.Spec.Template.Timeout.Duration = 10 * time.Second
		}
	}
	for name, c := range map[string]struct {
		change func(*input)
		pod    pod
		want   []podDeletion
		again  time.Duration
	}{
		"one that runs":            {nil, pod{name: "p"}, nil, 0},
		"one that has just ended":  {nil, pod{name: "p", ended: now.Add(-time.Second)}, nil, endedGrace - time.Second},
		"one that has ended":       {nil, pod{name: "p", ended: now.Add(-endedGrace)}, []podDeletion{{"p", agentEnded}}, 0},
		"one that is going":        {nil, pod{name: "p", ended: now.Add(-time.Hour), deleting: true}, nil, 0},
		"one that drains":          {deletedAgo(time.Second), pod{name: "p"}, nil, 39 * time.Second},
		"one that drains too long": {deletedAgo(40 * time.Second), pod{name: "p"}, []podDeletion{{"p", drainTimedOut}}, 0},
		"one that has drained":     {deletedAgo(10 * time.Second), pod{name: "p", ended: now.Add(-endedGrace)}, []podDeletion{{"p", agentEnded}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(c.change)
			in.pods = []pod{c.pod}
			out := plan(carriedOut(in))
			if diff := cmp.Diff(c.want, out.deletePods, cmp.AllowUnexported(podDeletion{})); diff != "" {
				t.Error(diff)
			}
			if out.again != c.again {
				t.Errorf("again in %v, want %v", out.again, c.again)
			}
		})
	}
}

func TestARevisionRecordsTheImageOfItsFirstInstance(t *testing.T) {
	in := given(nil)
	uid := in.revisions[0].UID
	in.pods = []pod{
		{name: "second", revision: uid, created: now.Add(-time.Second), imageID: "a@sha256:2"},
		{name: "first", revision: uid, created: now.Add(-time.Minute), imageID: "a@sha256:1"},
		{name: "silent", revision: uid, created: now.Add(-time.Hour)},
		{name: "other", revision: "uid-other", created: now.Add(-time.Hour), imageID: "a@sha256:3"},
	}
	in = carriedOut(in)
	if got := in.revisions[0].Status.ImageID; got != "a@sha256:1" {
		t.Errorf("the image is %q", got)
	}
	in.pods = []pod{{name: "third", revision: uid, created: now, imageID: "a@sha256:4"}}
	if out := plan(in); out.revisions != nil {
		t.Errorf("a later instance changes the record: %+v", out.revisions[0].Status)
	}
}

func TestImageIDOf(t *testing.T) {
	for want, containers := range map[string][]corev1.ContainerStatus{
		"":             {{Name: "agent", ImageID: "agent@sha256:1"}, {Name: "function"}},
		"f@sha256:2":   {{Name: "agent", ImageID: "agent@sha256:1"}, {Name: "function", ImageID: "f@sha256:2"}},
		"sha256:local": {{Name: "function", ImageID: "sha256:local"}},
	} {
		slim, err := slimPod(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: containers}})
		if err != nil {
			t.Fatal(err)
		}
		if got := imageIDOf(slim.(*corev1.Pod)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	long := corev1.ContainerStatus{Name: "function", ImageID: strings.Repeat("a", maxImageID+1)}
	if got := imageIDOf(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{long}}}); got != "" {
		t.Errorf("one that no status takes is %d bytes long", len(got))
	}
}

// A scheduler that launched an instance, and died before it started, leaves one that no other
// scheduler knows once the revision has no calls. It would keep the revision for ever.
func TestPodsOfRetiredRevisionsGo(t *testing.T) {
	const timeout = 30 * time.Second
	for name, c := range map[string]struct {
		pod   pod
		want  []podDeletion
		again time.Duration
	}{
		"of the revision that has the calls": {pod{revision: "uid-f-00004"}, nil, 0},
		"that may still run a call":          {pod{revision: "uid-f-00003", created: now.Add(time.Minute - timeout)}, nil, 30 * time.Second},
		"that is left":                       {pod{revision: "uid-f-00003"}, []podDeletion{{"p", revisionRetired}}, 0},
		"that is going":                      {pod{revision: "uid-f-00003", deleting: true}, nil, 0},
		"of no revision that there is":       {pod{revision: "uid-f-00001"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			in := carriedOut(updated(func(in *input) {
				in.units["f-00003"] = facts{generation: 4, started: true}
				in.units["f-00004"] = facts{generation: 4, created: 1, started: true}
			}))
			in.revisions[0].Spec.Template.Timeout.Duration = timeout
			in.revisions[0].Status.FullTrafficTime = metav1.Time{} // it is not kept for a return
			in.revisions[0].Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionActive, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now.Add(-2 * time.Hour)),
			}}
			c.pod.name = "p"
			in.pods = []pod{c.pod}
			out := plan(in)
			if diff := cmp.Diff(c.want, out.deletePods, cmp.AllowUnexported(podDeletion{})); diff != "" {
				t.Error(diff)
			}
			if out.again != c.again {
				t.Errorf("again in %v, want %v", out.again, c.again)
			}
		})
	}
}

func TestEventsTellOfChanges(t *testing.T) {
	failing := func(why problem) func(*input) {
		return observed(func(f *facts) { f.created, f.problem = 0, why })
	}
	exits := failing(problem{v1alpha1.ReasonFunctionExited, "exit code 1"})
	second := func(observed facts) func(*input) {
		return func(in *input) { in.units["f-00004"] = observed }
	}
	broken := facts{generation: 4, problem: problem{v1alpha1.ReasonFunctionExited, "exit code 1"}}
	for name, c := range map[string]struct {
		before input
		after  func(*input)
		want   []functionEvent
	}{
		"nothing happens": {given(nil), observed(func(f *facts) { f.created = 7 }), nil},
		"it fails":        {given(nil), exits, []functionEvent{{v1alpha1.ReasonFunctionExited, "f-00003: exit code 1", true}}},
		"it still fails":  {given(exits), observed(func(f *facts) { f.waiting = true }), nil},
		"it fails otherwise": {given(exits), failing(problem{"OutOfMemory", "65Mi"}),
			[]functionEvent{{"OutOfMemory", "f-00003: 65Mi", true}}},
		"it works again": {given(exits), observed(func(f *facts) { f.problem = problem{} }),
			[]functionEvent{{reasonReady, "the function can be called again", false}}},
		"it is observed": {given(func(in *input) { in.units = nil }), func(in *input) { in.units = given(nil).units },
			[]functionEvent{{reasonRevisionReady, "f-00003: an instance of it has started", false}}},
		"an update is proven": {updated(nil), second(facts{generation: 4, created: 1, started: true}), []functionEvent{
			{reasonRevisionReady, "f-00004: an instance of it has started", false}, {reasonTrafficMoved, "calls go to f-00004", false}}},
		"an update fails": {updated(nil), second(broken), []functionEvent{{v1alpha1.ReasonFunctionExited, "f-00004: exit code 1", true}}},
		"it is overdue":   {updated(second(broken)), func(in *input) { in.now = in.now.Add(time.Hour) }, nil},
		"traffic names what is missing": {given(nil), func(in *input) {
			in.function.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100, RevisionName: "f-00001"}}
		}, []functionEvent{
			{reasonTrafficMoved, "calls go to f-00003", false},
			{v1alpha1.ReasonRevisionMissing, "spec.traffic names revisions that do not exist: f-00001; their calls go where they went before; use names that \"kubectl get functionrevisions\" lists", true}}},
		"it is deleted": {given(nil), func(in *input) { in.function.DeletionTimestamp = &metav1.Time{Time: now} },
			[]functionEvent{{v1alpha1.ReasonDraining, "the function is being deleted: it takes no more calls, and its instances finish", false}}},
	} {
		t.Run(name, func(t *testing.T) {
			after := changed(c.before, c.after)
			if diff := cmp.Diff(c.want, plan(after).changes, cmp.AllowUnexported(functionEvent{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	first := plan(given(nil)).changes
	if diff := cmp.Diff([]functionEvent{{reasonRevisionReady, "f-00003: an instance of it has started", false}}, first, cmp.AllowUnexported(functionEvent{})); diff != "" {
		t.Errorf("the first calls are no move: %s", diff)
	}
	heard := []functionEvent{{"NodeLost", "node-3 does not answer", true}}
	in := carriedOut(given(nil))
	in.events = heard
	if diff := cmp.Diff(heard, plan(in).events, cmp.AllowUnexported(functionEvent{})); diff != "" {
		t.Error(diff)
	}
}

func TestEndedAt(t *testing.T) {
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(d)) }
	ended := func(name string, d time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at(d)}}}
	}
	running := func(name string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	}
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   time.Time
	}{
		"a pod that waits":        {corev1.PodStatus{Phase: corev1.PodPending}, time.Time{}},
		"a pod that runs":         {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running("agent"), running("function")}}, time.Time{}},
		"a function that ended":   {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{running("agent"), ended("function", 1)}}, time.Time{}},
		"an agent that ended":     {corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{ended("agent", time.Second), running("function")}}, now.Add(time.Second)},
		"a pod that was evicted":  {corev1.PodStatus{Phase: corev1.PodFailed}, now.Add(-time.Hour)},
		"an end without a time":   {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}}, now.Add(-time.Hour)},
		"all containers finished": {corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{ended("function", time.Minute)}}, now.Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1.Pod{Status: c.status}
			p.CreationTimestamp = at(-time.Hour)
			slim, err := slimPod(p)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range []*corev1.Pod{p, slim.(*corev1.Pod)} {
				if got := endedAt(p); !got.Equal(c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			}
		})
	}
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	long := strings.Repeat("é", maxMessage)
	for _, s := range []string{"short", long, "x" + long, "bad \xff"} {
		if got := truncate(s); len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid is %t", len(got), utf8.ValidString(got))
		}
	}
}

// Nothing but the counts changes when instances come and go with the calls.
func TestABurstIsNoNews(t *testing.T) {
	in := carriedOut(given(observed(func(f *facts) { f.created = 0 })))
	before := in.function.Status.Conditions
	for _, f := range []facts{{creating: 20, waiting: true}, {created: 20}, {created: 3}, {}} {
		in = changed(in, func(in *input) {
			f.generation, f.started = 3, true
			in.units["f-00003"] = f
			in.now = in.now.Add(time.Minute)
		})
		out := plan(in)
		if len(out.changes) > 0 {
			t.Errorf("%+v is told as %+v", f, out.changes)
		}
		in = carriedOut(in)
		if diff := cmp.Diff(before, in.function.Status.Conditions); diff != "" {
			t.Errorf("%+v: %s", f, diff)
		}
	}
}
