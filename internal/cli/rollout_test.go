package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// past is a harness with a store, in which instances of revisions start or fail as the
// test says.
type past struct {
	*harness
	store *file.Store
	known map[string]rollout.Observation
}

func openPast(t *testing.T) *past {
	t.Helper()
	th := quiet(t)
	store, err := file.Open(filepath.Join(th.dir, "functions"))
	if err != nil {
		t.Fatal(err)
	}
	p := &past{th, store, map[string]rollout.Observation{}}
	listener, err := localapi.Listen(th.dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	handler := localapi.New(localapi.Deps{Store: store, Reader: store, StatusReader: p, Archive: p, Logs: th, Decisions: th, CallLookup: th})
	go func() { served <- localapi.Serve(ctx, listener, handler) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("control: %v", err)
		}
	})
	return p
}

func (p *past) Status(fn *v1alpha1.Function) (status v1alpha1.FunctionStatus) {
	h, ok := p.store.History(fn.Key())
	if !ok {
		return status
	}
	rollout.StateOf(h.Function).Write(&status)
	so := h.Function.DeepCopy()
	so.Status.Conditions = nil
	status.Conditions, status.ObservedGeneration = rollout.Conditions(rollout.ConditionInput{Now: now, Function: so, Plan: h.Plan, Revisions: h.Revisions, Units: p.known})
	return status
}

func (p *past) Revisions(key invocation.FunctionKey) []*v1alpha1.FunctionRevision {
	h, _ := p.store.History(key)
	return h.Revisions
}

// sees has an instance of a revision of the function f start, or fail for a reason.
func (p *past) sees(t *testing.T, revision, failure string) {
	t.Helper()
	k := rollout.Observation{Observed: true, Generation: 99, Started: failure == "", Ready: 1}
	if failure != "" {
		k.Ready, k.Failure = 0, &rollout.Failure{Reason: v1alpha1.ReasonStartFailed, Message: failure}
	}
	p.known[revision] = k
	if err := p.store.Observe(invocation.FunctionKey{Namespace: "default", Name: "f"}, p.known); err != nil {
		t.Fatal(err)
	}
}

func (p *past) deploy(t *testing.T, word string) {
	t.Helper()
	p.run(t, "deploy", "--name", "f", "--", word).expect(t, exitOK, "out", "function default/f c")
}

func TestRolloutOnThisMachine(t *testing.T) {
	p := openPast(t)
	p.deploy(t, "one")
	p.run(t, "rollout", "status", "f", "--watch=false").expect(t, exitOK, "out", "f-00001: its first instance is starting\n")
	p.sees(t, "f-00001", "")
	p.run(t, "rollout", "status", "f").expect(t, exitOK, "out", "f-00001 has started; all calls go to f-00001\n")
	p.run(t, "rollout", "undo", "f").expect(t, exitPlatform, "err", "no revision of function default/f but the present one has started and had all calls", "f-00001")

	p.deploy(t, "two")
	p.sees(t, "f-00002", "SyntaxError\nline 2")
	p.run(t, "rollout", "status", "f", "--watch=false").expect(t, exitOK, "out", "StartFailed: f-00002: SyntaxError")
	p.run(t, "rollout", "status", "f", "--timeout", "10ms").expect(t, exitTimeout, "err", "function default/f is not there yet, after 10ms: StartFailed")
	p.run(t, "list").expect(t, exitOK, "out", "00001 100%, 00002 0%")
	p.run(t, "describe", "f").expect(t, exitOK, "out", "f-00002; all calls go to f-00001\n")

	p.deploy(t, "three")
	p.sees(t, "f-00003", "")
	p.run(t, "list").expect(t, exitOK, "out", "  00003  ")
	got := p.run(t, "rollout", "history", "f")
	got.expect(t, exitOK, "out", "REVISION")
	lines := strings.Split(strings.TrimSpace(got.out), "\n")
	for i, want := range []string{"REVISION READY WEIGHT TAGS AGE WHAT REASON", "f-00001 True 0% -", "f-00002 False 0% -", "* f-00003 True 100% -"} {
		if words := strings.Join(strings.Fields(lines[i]), " "); !strings.HasPrefix(words, want) {
			t.Errorf("line %d is %q, want %q", i, words, want)
		}
	}
	if !strings.HasSuffix(lines[2], " StartFailed: SyntaxError line 2") {
		t.Errorf("the reason is not told: %q", lines[2])
	}
	p.run(t, "rollout", "history", "f", "-o", "yaml").expect(t, exitOK, "out", "kind: FunctionRevisionList", "name: f-00002")

	// The broken one never had the calls.
	got = p.run(t, "rollout", "undo", "f")
	got.expect(t, exitOK, "out", "function default/f is f-00001 again: one\n  ~ template.command")
	if !strings.Contains(got.err, "windlass rollout status f") || !strings.Contains(got.err, "the manifest that it was deployed from still says otherwise") {
		t.Errorf("it says\n%s", got.err)
	}
	p.run(t, "rollout", "status", "f").expect(t, exitOK, "out", "f-00001 has started; all calls go to f-00001\n")
	p.run(t, "rollout", "undo", "f").expect(t, exitOK, "out", "function default/f is f-00003 again: three\n")
	for _, to := range []string{"1", "00001", "f-00001"} {
		p.run(t, "rollout", "undo", "f", "--to", "3").expect(t, exitOK, "out", "f-00003")
		p.run(t, "rollout", "undo", "f", "--to", to).expect(t, exitOK, "out", "function default/f is f-00001 again")
	}
	p.run(t, "rollout", "undo", "f", "--to", "f-00001").expect(t, exitOK, "out", "function default/f is f-00001 already\n")
	p.run(t, "rollout", "undo", "f", "--to", "7").expect(t, exitUsage, "err", "--to 7: function default/f has no such revision; those that are kept are f-00001, f-00002, f-00003")
	if n := len(p.Revisions(invocation.FunctionKey{Namespace: "default", Name: "f"})); n != 3 {
		t.Errorf("%d revisions", n)
	}
	p.run(t, "rollout", "undo", "nobody").expect(t, exitPlatform, "err", "there is no function default/nobody")
	p.run(t, "rollout").expect(t, exitUsage, "err", "windlass rollout status, history or undo")
	got = p.run(t, "__complete", "rollout", "undo", "f", "--to", "")
	got.expect(t, exitOK, "out", "f-00002\nf-00003\n")
	if strings.Contains(got.out, "f-00001") {
		t.Errorf("the present one is offered:\n%s", got.out)
	}
}

// The first revision gets all calls before it has started.
func TestUndoLeavesOutARevisionThatNeverStarted(t *testing.T) {
	p := openPast(t)
	p.deploy(t, "broken")
	p.sees(t, "f-00001", "SyntaxError")
	p.deploy(t, "fixed")
	p.sees(t, "f-00002", "")
	p.run(t, "rollout", "undo", "f").expect(t, exitPlatform, "err", "no revision of function default/f but the present one has started and had all calls")
}

func TestUndoSaysThatTrafficStays(t *testing.T) {
	for name, c := range map[string]struct {
		traffic []v1alpha1.TrafficTarget
		want    string
	}{
		"all of it":             {[]v1alpha1.TrafficTarget{{Tag: "live", RevisionName: "f-00007", Weight: 100}}, "calls still go where spec.traffic says: 100 % to f-00007; change that, too"},
		"a part":                {[]v1alpha1.TrafficTarget{{Tag: "a", RevisionName: "f-00006", Weight: 60}, {Tag: "b", RevisionName: "f-00007", Weight: 40}}, "says: 40 % to f-00007; change"},
		"the latest, and a tag": {[]v1alpha1.TrafficTarget{{Tag: "live", Weight: 100}, {Tag: "old", RevisionName: "f-00007"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fn := rolledOut(metav1.ConditionTrue, v1alpha1.ReasonStarted, func(fn *v1alpha1.Function) {
				fn.Generation, fn.Spec.Template.Image, fn.Spec.Traffic = 7, "example.com/f:7", c.traffic
				fn.Status.LatestCreatedRevisionName = "f-00007"
			})
			old := fn.DeepCopy()
			old.Generation, old.Spec.Template.Image = 6, "example.com/f:6"
			objects := []client.Object{fn}
			for _, of := range []*v1alpha1.Function{old, fn} {
				objects = append(objects, v1alpha1.NewRevision(of))
			}
			got := newClusterHarness(t, objects...).run(t, "rollout", "undo", "f", "--to", "6")
			got.expect(t, exitOK, "out", "function team/f is f-00006 again")
			if strings.Contains(got.err, "spec.traffic") != (c.want != "") || !strings.Contains(got.err, c.want) {
				t.Errorf("it says\n%s", got.err)
			}
		})
	}
}

func TestARevisionWhoseFilesHaveChangedCannotComeBack(t *testing.T) {
	p := openPast(t)
	code := write(t, map[string]string{"app.py": "1"})
	deploy := func() {
		t.Helper()
		p.run(t, "deploy", "--name", "f", "--code", code, "--", "python3", "app.py").expect(t, exitOK, "out", "function default/f c")
	}
	deploy()
	p.sees(t, "f-00001", "")
	if err := os.WriteFile(filepath.Join(code, "app.py"), []byte("number two"), 0o600); err != nil {
		t.Fatal(err)
	}
	deploy()
	p.sees(t, "f-00002", "")
	key := invocation.FunctionKey{Namespace: "default", Name: "f"}
	before, _ := p.store.Get(key)
	p.run(t, "rollout", "undo", "f").expect(t, exitPlatform, "err", "f-00001 cannot come back: the files of "+code, "restore them", "deploy f again")
	if err := os.RemoveAll(code); err != nil {
		t.Fatal(err)
	}
	p.run(t, "rollout", "undo", "f").expect(t, exitUsage, "err", "f-00001 cannot come back: the files of "+code)
	// What its instances do meanwhile changes its status.
	if after, _ := p.store.Get(key); after.Generation != before.Generation || !equality.Semantic.DeepEqual(after.Spec, before.Spec) {
		t.Error("the function was changed")
	}

	// One without files does.
	p.run(t, "deploy", "--name", "f", "--", "server").expect(t, exitOK, "out", "function default/f c")
	p.sees(t, "f-00003", "")
	p.deploy(t, "another")
	p.sees(t, "f-00004", "")
	p.run(t, "rollout", "undo", "f").expect(t, exitOK, "out", "function default/f is f-00003 again: server\n")
}

// stopped is a Windlass that has just stopped.
type stopped struct{ editor }

func (stopped) Change(context.Context, invocation.FunctionKey, func(*v1alpha1.Function) error, bool) (localapi.Applied, error) {
	return localapi.Applied{}, errors.New("no answer")
}

func TestAnUndoThatGetsNoAnswerBlamesNoFiles(t *testing.T) {
	revision := &v1alpha1.FunctionRevision{}
	revision.Annotations = map[string]string{v1alpha1.AnnotationCodeStamp: "stamp"}
	revision.Name = "f-00001"
	r := &rollouter{newApp(Streams{}, Programs{}).finder}
	if err := r.undo(t.Context(), &target{editor: stopped{}}, &v1alpha1.Function{}, revision); err == nil || err.Error() != "no answer" {
		t.Errorf("it says %v", err)
	}
}

func TestRolloutFollowsUntilTheEnd(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	verifying := rolledOut(unknown, v1alpha1.ReasonVerifying, condition(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonVerifying))
	failing := rolledOut(no, v1alpha1.ReasonStartFailed, condition(v1alpha1.ConditionReconciling, yes, v1alpha1.ReasonVerifying))
	stalled := rolledOut(no, v1alpha1.ReasonStartFailed, condition(v1alpha1.ConditionStalled, yes, v1alpha1.ReasonStartFailed))
	started := rolledOut(yes, v1alpha1.ReasonStarted)
	unverified := rolledOut(yes, v1alpha1.ReasonNotVerified)
	other := rolledOut(yes, v1alpha1.ReasonStarted)
	other.UID = "another"
	for name, c := range map[string]struct {
		answers []*v1alpha1.Function // nil while the API server restarts
		out     string
		err     []string
	}{
		"it cannot be asked once":  {[]*v1alpha1.Function{verifying, nil, nil, started}, "f-00002: the reason in full\nf-00002 has started; all calls go to f-00002\n", nil},
		"it cannot be asked again": {[]*v1alpha1.Function{verifying, nil}, "f-00002: the reason in full\n", []string{"not there yet, after 1h0m0s", "the last question was not answered: the cluster does not answer\n"}},
		"it starts":                {[]*v1alpha1.Function{verifying, failing, started}, "f-00002: the reason in full\nStartFailed: f-00002: the reason in full\nf-00002 has started; all calls go to f-00002\n", nil},
		"it need not":              {[]*v1alpha1.Function{unverified}, "f-00002 is not verified, as rollout.verify is None; all calls go to f-00002\n", nil},
		"it never does":            {[]*v1alpha1.Function{verifying, stalled}, "f-00002: the reason in full\n", []string{"the change does not come into use: StartFailed: f-00002", "all calls go to f-00001\n", "windlass rollout undo"}},
		"it goes":                  {[]*v1alpha1.Function{verifying, other}, "f-00002: the reason in full\n", []string{"was deleted"}},
		"it takes long":            {[]*v1alpha1.Function{verifying}, "f-00002: the reason in full\n", []string{"not there yet, after 1h0m0s: f-00002"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out, told bytes.Buffer
				r := rollouter{&finder{home: "team", host: &host{Streams: Streams{Out: &out, Err: &told}, now: time.Now}}}
				s := &script{}
				for _, fn := range c.answers[1:] {
					answer := is(fn)
					if fn == nil {
						answer = restarts
					}
					s.answers = append(s.answers, answer)
				}
				if len(s.answers) == 0 || len(c.answers) == 1 {
					s.answers = append(s.answers, is(c.answers[0]))
				}
				err := r.followRollout(t.Context(), &target{registry: s}, c.answers[0], time.Hour)
				if out.String() != c.out {
					t.Errorf("it prints\n%swant\n%s", out.String(), c.out)
				}
				if (err == nil) != (c.err == nil) {
					t.Fatalf("the error is %v", err)
				}
				if strings.Count(told.String(), "asking again") > 1 {
					t.Errorf("it tells one trouble more than once:\n%s", told.String())
				}
				for _, want := range c.err {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the error lacks %q: %v", want, err)
					}
				}
			})
		})
	}
}

// Attempts differ in their stack traces, and each would be told again.
func TestOfAFailureOnlyTheLastLogLineIsTold(t *testing.T) {
	const failed = "StartFailed: f-00002: the function exited with status 1"
	for text, want := range map[string]string{
		failed: failed,
		failed + "; its last log lines:\nTraceback\n  File \"1.py\"\nSyntaxError: expected ':'\n": failed + ": SyntaxError: expected ':'",
		"f-00002: one\ntwo": "f-00002: one\ntwo",
	} {
		if got := headline(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestRolloutInACluster(t *testing.T) {
	fn := rolledOut(metav1.ConditionTrue, v1alpha1.ReasonStarted, func(fn *v1alpha1.Function) {
		fn.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 90}, {Tag: "old", RevisionName: "f-00001", Weight: 10}}
		fn.Status.Traffic = []v1alpha1.TrafficStatus{{Tag: "live", RevisionName: "f-00002", Weight: 90}, {Tag: "old", RevisionName: "f-00001", Weight: 10}}
		fn.Spec.Template.Image = "example.com/f:2"
	})
	old := fn.DeepCopy()
	old.Generation, old.Spec.Template.Image = 1, "example.com/f:1"
	objects := []client.Object{fn}
	for _, of := range []*v1alpha1.Function{old, fn} {
		r := v1alpha1.NewRevision(of)
		r.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		r.Status.FullTrafficTime = metav1.NewTime(now)
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonStarted}}
		objects = append(objects, r)
	}
	s := newClusterHarness(t, objects...)
	got := s.run(t, "rollout", "history", "f")
	got.out = strings.Join(strings.Fields(got.out), " ")
	got.expect(t, exitOK, "out", " REASON f-00001 True 10% old 60m example.com/f:1 * f-00002 True 90% live 60m example.com/f:2")
	s.run(t, "list").expect(t, exitOK, "out", "00002 90%, 00001 10%")
	s.run(t, "describe", "f").expect(t, exitOK, "out", "f-00002; 90 % of the calls go to f-00002, tag live; 10 % of the calls go to f-00001, tag old\n")
	s.run(t, "rollout", "undo", "f").expect(t, exitOK, "out", "function team/f is f-00001 again: example.com/f:1\n  ~ template.image example.com/f:2 -> example.com/f:1\n")
	var after v1alpha1.Function
	if err := s.kube.Get(t.Context(), client.ObjectKeyFromObject(fn), &after); err != nil || after.Spec.Template.Image != "example.com/f:1" || len(after.Spec.Traffic) != 2 {
		t.Errorf("%v; the function is %+v", err, after.Spec)
	}
	s = newClusterHarness(t, clusterFunction("team", "g", metav1.ConditionTrue, v1alpha1.ReasonStarted))
	s.run(t, "rollout", "history", "g").expect(t, exitPlatform, "err", "function team/g has no revision yet")
	s.run(t, "rollout", "status", "g", "--watch=false").expect(t, exitOK, "out", "generation 1 of function team/g has not been taken up yet")
}
