//go:build apiserver

package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// harness is a controller that runs, and the API server that it works with.
type harness struct {
	client.Client
	t          *testing.T
	namespace  string
	schedulers *fakeSchedulers
	scheduler  *fakeScheduler
	controller *Controller
}

// newHarness runs a controller for a namespace of the test's own.
func newHarness(t *testing.T, change func(*Config, *Deps)) *harness {
	c := newClient(t)
	w := &harness{Client: c, t: t, namespace: newNamespace(t, c), schedulers: newFakeSchedulers()}
	w.scheduler = w.schedulers.add(t, "scheduler:1")
	config := Config{
		Namespace: w.namespace, Namespaces: []string{w.namespace}, SchedulerService: "windlass-scheduler",
		Hosts: address.Rules{URLs: urls("http://gateway", "")},
	}
	deps := Deps{
		REST: apiServer(t), Dial: w.schedulers.dial(), Schedulers: w.schedulers,
		Registerer: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	if change != nil {
		change(&config, &deps)
	}
	controller, err := New(config, deps)
	if err != nil {
		t.Fatal(err)
	}
	w.controller = controller
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- controller.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return w
}

// make creates an object of the world's namespace.
func (w *harness) make(o client.Object) {
	w.t.Helper()
	o.SetNamespace(w.namespace)
	if err := w.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harness) makeFunction(name string, spec v1alpha1.FunctionSpec) *v1alpha1.Function {
	w.t.Helper()
	f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	w.make(f)
	return f
}

// makePod makes a pod as a scheduler does, and waits until the controller has seen it,
// if there is one.
func (w *harness) makePod(f *v1alpha1.Function, cid string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name + "-" + cid, Labels: map[string]string{
			wellknown.LabelManagedBy: wellknown.ManagedBy, wellknown.LabelFunction: f.Name, wellknown.LabelFunctionUID: string(f.UID),
			wellknown.LabelComponent: wellknown.ComponentFunction,
		}},
		Spec: corev1.PodSpec{
			NodeName: "nowhere", TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "agent", Image: "a"}, {Name: "function", Image: "b"}},
		},
	}
	w.make(p)
	if w.controller != nil {
		eventually(w.t, func(ctx context.Context) error {
			return w.controller.manager.GetClient().Get(ctx, client.ObjectKeyFromObject(p), p.DeepCopy())
		})
	}
	return p
}

// endAgent makes a pod's agent have ended a while ago.
func (w *harness) endAgent(p *corev1.Pod) {
	w.t.Helper()
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "agent", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(time.Now().Add(-time.Hour))},
	}}}
	if err := w.Status().Update(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// removed waits until a pod with nothing to finish is being deleted, and ends it as its kubelet
// would.
func (w *harness) removed(p *corev1.Pod) {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil || p.DeletionTimestamp == nil {
			return fmt.Errorf("pod %s is not being deleted, error %v", p.Name, err)
		}
		return nil
	})
	if got := *p.DeletionGracePeriodSeconds; got != podspec.EndedGrace {
		w.t.Errorf("pod %s has %d s to end", p.Name, got)
	}
	if err := w.Delete(w.t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		w.t.Fatal(err)
	}
	w.gone(p)
}

// gone waits until an object does not exist.
func (w *harness) gone(o client.Object) {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%T %s is still there, error %v", o, o.GetName(), err)
		}
		return nil
	})
}

// ready waits until the function's condition Ready is "Status/Reason".
func (w *harness) ready(f *v1alpha1.Function, want string) {
	w.t.Helper()
	w.says(f, v1alpha1.ConditionReady, want)
}

// says waits until a condition of the function is so.
func (w *harness) says(f *v1alpha1.Function, kind, want string) {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil {
			return err
		}
		c := findCondition(f.Status.Conditions, kind)
		if got := string(c.Status) + "/" + c.Reason; got != want {
			return fmt.Errorf("%s is %s (%s)", kind, got, c.Message)
		}
		return nil
	})
}

// event waits for an Event about the function.
func (w *harness) event(f *v1alpha1.Function, kind, reason string) {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		var events corev1.EventList
		if err := w.List(ctx, &events, client.InNamespace(w.namespace)); err != nil {
			return err
		}
		var seen []string
		for _, e := range events.Items {
			if e.InvolvedObject.UID == f.UID && e.Type == kind && e.Reason == reason {
				return nil
			}
			seen = append(seen, e.Reason)
		}
		return fmt.Errorf("no Event %s, only %v", reason, seen)
	})
}

// revision waits for the revision of the function as it is now.
func (w *harness) revision(f *v1alpha1.Function) *v1alpha1.FunctionRevision {
	w.t.Helper()
	r := &v1alpha1.FunctionRevision{}
	eventually(w.t, func(ctx context.Context) error {
		return w.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: v1alpha1.RevisionName(f.Name, f.Generation)}, r)
	})
	return r
}

// tells makes the scheduler tell of the function's present revision: an instance of it
// has started and is gone, unless change says otherwise.
func (w *harness) tells(f *v1alpha1.Function, change func(*controlwire.FunctionFacts)) {
	w.t.Helper()
	w.tellsOf(f, w.revision(f), change)
}

// tellsOf makes the scheduler tell of a revision of the function.
func (w *harness) tellsOf(f *v1alpha1.Function, r *v1alpha1.FunctionRevision, change func(*controlwire.FunctionFacts)) {
	w.t.Helper()
	observed := &controlwire.FunctionFacts{
		FunctionUid: string(r.UID), Namespace: f.Namespace, Name: f.Name, Generation: f.Generation, Started: true,
	}
	if change != nil {
		change(observed)
	}
	w.scheduler.says(w.t, &controlwire.WatchReply{Functions: []*controlwire.FunctionFacts{observed}})
}

func TestStatusFollowsTheScheduler(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}})
	w.ready(f, "Unknown/Verifying")
	if !slices.Contains(f.Finalizers, wellknown.FinalizerDrain) {
		t.Error("the finalizer is missing")
	}
	if !w.controller.Ready() {
		t.Error("a controller that works is not ready")
	}
	w.tells(f, func(facts *controlwire.FunctionFacts) {
		facts.Created, facts.Creating, facts.Busy, facts.Queued = 3, 1, 2, 5
		facts.Events = []*controlwire.Event{{Reason: v1alpha1.ReasonNodeLost, Message: "node-1 is gone", Warning: true}}
	})
	w.ready(f, "True/Started")
	want := v1alpha1.InstanceCounts{Ready: 3, Desired: 4}
	if f.Status.Instances != want || f.Status.URL != "http://gateway/function/f."+w.namespace || f.Status.ObservedGeneration != f.Generation {
		t.Errorf("status is %+v", f.Status)
	}
	w.event(f, corev1.EventTypeWarning, v1alpha1.ReasonNodeLost)
	w.event(f, corev1.EventTypeNormal, reasonRevisionReady)
	w.tells(f, func(facts *controlwire.FunctionFacts) {
		facts.Problem = &controlwire.StartProblem{Reason: v1alpha1.ReasonImagePullFailed, Detail: "not found"}
	})
	w.ready(f, "False/ImagePullFailed")
	w.event(f, corev1.EventTypeWarning, v1alpha1.ReasonImagePullFailed)
	w.tells(f, nil)
	w.ready(f, "True/Started")
	w.event(f, corev1.EventTypeNormal, reasonReady)
}

// A function may be as busy as it likes: nothing is written for it while its instances stay.
func TestTelemetryIsNotWritten(t *testing.T) {
	w := newHarness(t, nil)
	busy, other := w.makeFunction("busy", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}}),
		w.makeFunction("other", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}})
	for _, f := range []*v1alpha1.Function{busy, other} {
		w.tells(f, func(facts *controlwire.FunctionFacts) { facts.Created = 1 })
		w.ready(f, "True/Started")
	}
	for _, f := range []*v1alpha1.Function{busy, other} {
		eventually(t, func(ctx context.Context) error { // the last that the start brings about
			if r := w.revision(f); r.Spec.Instances != 1 || r.Status.Instances.Ready != 1 {
				return fmt.Errorf("its scale is %d of %d", r.Status.Instances.Ready, r.Spec.Instances)
			}
			return w.Get(ctx, client.ObjectKeyFromObject(f), f)
		})
	}
	for n := range uint32(20) {
		w.tells(busy, func(facts *controlwire.FunctionFacts) {
			facts.Created, facts.Busy, facts.Queued, facts.MeanExecNs, facts.MeanStartNs = 1, n%2, n, int64(n), int64(n)
		})
	}
	w.tells(other, func(facts *controlwire.FunctionFacts) {
		facts.Problem = &controlwire.StartProblem{Reason: v1alpha1.ReasonImagePullFailed, Detail: "not found"}
	})
	w.ready(other, "False/ImagePullFailed")
	before, revision := busy.ResourceVersion, w.revision(busy).ResourceVersion
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(busy), busy); err != nil {
		t.Fatal(err)
	}
	if busy.ResourceVersion != before || w.revision(busy).ResourceVersion != revision {
		t.Errorf("written, and it is now %+v", busy.Status)
	}
}

// change gives the function another image, which makes a revision.
func (w *harness) change(f *v1alpha1.Function, image string) *v1alpha1.FunctionRevision {
	w.t.Helper()
	eventually(w.t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil {
			return err
		}
		f.Spec.Template.Image = image
		return w.Update(ctx, f)
	})
	return w.revision(f)
}

// serves waits until all calls of the function go to a revision, and it says so.
func (w *harness) serves(f *v1alpha1.Function, r *v1alpha1.FunctionRevision) {
	w.t.Helper()
	want := []v1alpha1.TrafficStatus{{RevisionName: r.Name, Weight: 100}}
	eventually(w.t, func(ctx context.Context) error {
		if err := errors.Join(w.Get(ctx, client.ObjectKeyFromObject(f), f), w.Get(ctx, client.ObjectKeyFromObject(r), r)); err != nil {
			return err
		}
		if active := findCondition(r.Status.Conditions, v1alpha1.ConditionActive).Status; !slices.Equal(f.Status.Traffic, want) || active != metav1.ConditionTrue {
			return fmt.Errorf("traffic is %+v, Active of %s is %q", f.Status.Traffic, r.Name, active)
		}
		return nil
	})
}

func TestAnUpdateIsProvenBeforeItHasCalls(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a:1"}, RevisionHistoryLimit: new(int32)})
	first := w.revision(f)
	w.tells(f, func(facts *controlwire.FunctionFacts) { facts.Created = 1 })
	w.ready(f, "True/Started")
	w.serves(f, first)

	second := w.change(f, "a:2")
	w.tellsOf(f, first, func(facts *controlwire.FunctionFacts) { facts.Created = 1 })
	w.tellsOf(f, second, func(facts *controlwire.FunctionFacts) {
		facts.Started = false
		facts.Problem = &controlwire.StartProblem{Reason: v1alpha1.ReasonFunctionExited, Detail: "exit code 1"}
	})
	w.event(f, corev1.EventTypeWarning, v1alpha1.ReasonFunctionExited)
	w.ready(f, "True/Started")
	w.serves(f, first)

	w.tellsOf(f, second, func(facts *controlwire.FunctionFacts) { facts.Created = 1 })
	w.serves(f, second)
	w.event(f, corev1.EventTypeNormal, reasonTrafficMoved)
	if f.Status.LatestReadyRevisionName != second.Name || second.Status.FullTrafficTime.IsZero() ||
		second.Status.Selector != wellknown.LabelRevisionUID+"="+string(second.UID) {
		t.Errorf("status is %+v, that of the revision %+v", f.Status, second.Status)
	}
	scale := &autoscalingv1.Scale{}
	eventually(t, func(ctx context.Context) error {
		if err := w.SubResource("scale").Get(ctx, second, scale); err != nil {
			return err
		}
		if scale.Spec.Replicas != 1 || scale.Status.Replicas != 1 {
			return fmt.Errorf("scale is %+v", scale)
		}
		return nil
	})

	// The history has no room for the first one, which goes with its last instance.
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(first), first); err != nil {
		t.Error(err)
	}
	w.tellsOf(f, first, nil)
	w.gone(first)
}

// The controller keeps no code in memory, but a revision is nothing without it.
func TestRevisionsHaveTheCode(t *testing.T) {
	w := newHarness(t, nil)
	makeRuntime(t, w, &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "coded"}, Spec: v1alpha1.ClusterRuntimeSpec{Image: "r"}})
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{
		RuntimeRef: v1alpha1.RuntimeReference{Name: "coded"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "first\n"},
	}})
	first := w.revision(f)
	w.tells(f, nil)
	w.ready(f, "True/Started")
	f.Spec.Template.Code.Inline = "second\n"
	if err := w.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	second := w.revision(f)
	w.tellsOf(f, first, nil)
	w.tellsOf(f, second, nil)
	w.serves(f, second)
	if a, b := first.Spec.Template.Code.Inline, second.Spec.Template.Code.Inline; a != "first\n" || b != "second\n" {
		t.Errorf("their code is %q and %q", a, b)
	}
	if f.Spec.Template.Code.Inline != "second\n" {
		t.Errorf("the function's code has become %q", f.Spec.Template.Code.Inline)
	}
	var all v1alpha1.FunctionRevisionList
	if err := w.List(t.Context(), &all, client.InNamespace(w.namespace)); err != nil || len(all.Items) != 2 {
		t.Errorf("there are %d revisions, error %v", len(all.Items), err)
	}
}

// The API server of this test has no garbage collector, as one that is slow.
func TestARevisionOfAnOlderFunctionGivesWay(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a:1"}})
	first := w.revision(f)
	w.tells(f, nil)
	w.ready(f, "True/Started")
	if err := w.Delete(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	w.gone(f)
	f = w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a:2"}})
	eventually(t, func(context.Context) error {
		if r := w.revision(f); r.UID == first.UID || !r.Of(f) {
			return errors.New("it is still the old one")
		}
		return nil
	})
	w.tells(f, nil)
	w.ready(f, "True/Started")
}

// Before a controller comes, tools must not take a function for one that is ready.
func TestAFunctionThatNobodyHasLookedAtIsPending(t *testing.T) {
	c := newClient(t)
	w := &harness{Client: c, t: t, namespace: newNamespace(t, c)}
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}})
	w.ready(f, "Unknown/Pending")
	var functions v1alpha1.FunctionList
	if err := w.List(t.Context(), &functions, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	if got := brief(functions.Items[0].Status.Conditions); got != "Ready=Unknown/Pending" {
		t.Errorf("in a list it says %q", got)
	}
}

func TestStatusIsNotWrittenForNothing(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
	before := f.ResourceVersion
	for range 20 {
		w.tells(f, nil)
	}
	// What comes behind shows that the messages before it have had their turn.
	other := w.makeFunction("other", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}})
	w.tells(other, nil)
	w.ready(other, "True/Started")
	w.ready(f, "True/Started")
	if f.ResourceVersion != before {
		t.Errorf("version %s has become %s", before, f.ResourceVersion)
	}
}

func TestInvalidFunctionsSaySo(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a", Args: []string{"a\x00b"}}})
	w.ready(f, "False/Invalid")
	w.event(f, corev1.EventTypeWarning, v1alpha1.ReasonInvalid)
}

func TestRuntimesComeBack(t *testing.T) {
	const name = "comes-back"
	rt := v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ClusterRuntimeSpec{Image: "r:1", FileExtension: "rb"}}
	w := newHarness(t, func(c *Config, _ *Deps) { c.Runtimes = []v1alpha1.ClusterRuntime{rt} })
	installed := func() *v1alpha1.ClusterRuntime {
		found := &v1alpha1.ClusterRuntime{}
		eventually(t, func(ctx context.Context) error { return w.Get(ctx, client.ObjectKey{Name: name}, found) })
		return found
	}
	first := installed()
	if first.Labels[wellknown.LabelManagedBy] != wellknown.ManagedBy || first.Spec.Protocol != v1alpha1.ProtocolLambdaRuntime {
		t.Errorf("got %+v", first)
	}
	if err := w.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		if installed().UID == first.UID {
			return errors.New("it is still the old one")
		}
		return nil
	})
}

func TestFunctionsHearOfTheirRuntime(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "late"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"}}})
	w.ready(f, "False/RuntimeNotFound")
	makeRuntime(t, w, &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Spec: v1alpha1.ClusterRuntimeSpec{Image: "r"}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
}

// A quota counts revisions. The function that is over it keeps its calls, and says why.
func TestARevisionThatIsRefusedIsInTheStatus(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a:1"}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
	const counted = "count/functionrevisions." + v1alpha1.GroupName
	none := corev1.ResourceList{counted: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota", Namespace: w.namespace}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	w.make(quota)
	// There is no controller of quotas.
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none}
	if err := w.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	f.Spec.Template.Image = "a:2"
	if err := w.Update(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	w.event(f, corev1.EventTypeWarning, v1alpha1.ReasonRevisionRefused)
	w.ready(f, "True/Started")
	proof := findCondition(f.Status.Conditions, v1alpha1.ConditionRevisionReady)
	if proof.Reason != v1alpha1.ReasonRevisionRefused || !strings.Contains(proof.Message, "exceeded quota") {
		t.Errorf("RevisionReady is %+v", proof)
	}
	if err := w.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	w.revision(f)
}

// A ClusterRuntime that was made again with another protocol gives the same template another
// meaning, at the same generation.
func TestARuntimeThatWasMadeAgainChangesNoProtocol(t *testing.T) {
	w := newHarness(t, nil)
	again := func(protocol v1alpha1.Protocol) *v1alpha1.ClusterRuntime {
		return &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: v1alpha1.ClusterRuntimeSpec{Image: "r", Protocol: protocol}}
	}
	old := again(v1alpha1.ProtocolHTTP)
	makeRuntime(t, w, old)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{
		RuntimeRef: v1alpha1.RuntimeReference{Name: "again"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "x"},
	}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
	if err := w.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.says(f, v1alpha1.ConditionStalled, "True/RuntimeNotFound")
	w.ready(f, "True/Started")
	makeRuntime(t, w, again(v1alpha1.ProtocolLambdaRuntime))
	w.says(f, v1alpha1.ConditionStalled, "True/Invalid")
	w.ready(f, "True/Started")
	if stalled := findCondition(f.Status.Conditions, v1alpha1.ConditionStalled); !strings.Contains(stalled.Message, "cannot change from HTTP") {
		t.Errorf("Stalled is %+v", stalled)
	}
}

func TestPodsWhoseAgentEndedGo(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}})
	running, ended := w.makePod(f, "1"), w.makePod(f, "2")
	w.endAgent(ended)
	w.removed(ended)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(running), running); err != nil {
		t.Errorf("the pod that runs: %v", err)
	}
}

func TestADeletedFunctionWaitsForItsPods(t *testing.T) {
	w := newHarness(t, nil)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
	p := w.makePod(f, "1")
	if err := w.Delete(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	w.ready(f, "False/Draining")
	w.event(f, corev1.EventTypeNormal, v1alpha1.ReasonDraining)
	w.endAgent(p)
	w.removed(p)
	w.gone(f)
	w.event(f, corev1.EventTypeNormal, reasonDrained)
}

func TestNamespacesWithFunctionsHaveAPolicy(t *testing.T) {
	w := newHarness(t, func(c *Config, _ *Deps) { c.Egress.Mode = EgressInternet })
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: PolicyName, Namespace: w.namespace}}
	there := func() {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			if err := w.Get(ctx, client.ObjectKeyFromObject(policy), policy); err != nil {
				return err
			}
			if !equality.Semantic.DeepEqual(policy.Spec, policySpec(w.namespace, Egress{Mode: EgressInternet})) {
				return fmt.Errorf("it says %+v", policy.Spec)
			}
			if policy.Labels[wellknown.LabelManagedBy] != wellknown.ManagedBy {
				return fmt.Errorf("its labels are %v", policy.Labels)
			}
			return nil
		})
	}
	f, g := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}}), w.makeFunction("g", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}})
	there()
	policy.Spec.Ingress = []networkingv1.NetworkPolicyIngressRule{{}}
	if err := w.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	there()
	policy.Labels = nil
	if err := w.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	there()
	if err := w.Delete(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	there()
	for _, f := range []*v1alpha1.Function{f, g} {
		there()
		if err := w.Delete(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		w.gone(f)
	}
	w.gone(policy)
}

func TestSchedulersAreFoundByTheirService(t *testing.T) {
	port, name := int32(9443), wirePort
	w := newHarness(t, func(_ *Config, d *Deps) { d.Schedulers = nil })
	found := w.schedulers.add(t, "10.1.2.3:9443")
	w.make(&discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: "windlass-scheduler"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port}},
	})
	w.scheduler = found
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
}

func TestOnlyTheLeaderWorks(t *testing.T) {
	leads := func(c *Config, _ *Deps) { c.LeaderElection = true }
	w := newHarness(t, leads)
	f := w.makeFunction("f", v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a"}})
	w.tells(f, nil)
	w.ready(f, "True/Started")
	second := newHarness(t, func(c *Config, d *Deps) {
		leads(c, d)
		c.Namespace, c.Namespaces = w.namespace, []string{w.namespace}
	})
	eventually(t, func(context.Context) error {
		if !second.controller.Ready() {
			return errors.New("a controller that waits is not ready")
		}
		return nil
	})
	select {
	case second.scheduler.send <- says("u", 1):
		t.Error("a second controller follows the schedulers")
	default:
	}
}

func TestAHostGoesToTheNextWhenItsFunctionIsGone(t *testing.T) {
	const host = "shop.example.org"
	w := newHarness(t, func(c *Config, _ *Deps) { c.Hosts.Permits = func(string, string) bool { return true } })
	spec := v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a/b"}, Expose: v1alpha1.Expose{Hosts: []v1alpha1.Hostname{host}}}
	// They may be of the same second: then the name decides.
	older, younger := w.makeFunction("a", spec), w.makeFunction("b", spec)
	has := func(f *v1alpha1.Function, want v1alpha1.HostState) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			if err := w.Get(ctx, client.ObjectKeyFromObject(f), f); err != nil {
				return err
			}
			if len(f.Status.Hosts) != 1 || f.Status.Hosts[0] != (v1alpha1.HostStatus{Hostname: host, State: want}) {
				return fmt.Errorf("%s has %v", f.Name, f.Status.Hosts)
			}
			return nil
		})
	}
	has(older, v1alpha1.HostAccepted)
	has(younger, v1alpha1.HostConflict)
	eventually(t, func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(older), older); err != nil {
			return err
		}
		older.Spec.Expose = v1alpha1.Expose{}
		return w.Update(ctx, older)
	})
	has(younger, v1alpha1.HostAccepted)
}

// makeSpare makes a pod of a scheduler's warm pool.
func (w *harness) makeSpare(name string) *corev1.Pod {
	w.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			wellknown.LabelManagedBy: wellknown.ManagedBy, wellknown.LabelComponent: wellknown.ComponentSpare,
			wellknown.LabelRuntime: "python3.13", wellknown.LabelPool: "small", wellknown.LabelScheduler: "windlass-scheduler-1",
		}},
		Spec: corev1.PodSpec{
			NodeName: "nowhere", TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "agent", Image: "a"}, {Name: "function", Image: "b"}},
		},
	}
	w.make(p)
	return p
}

func TestSparePodsWhoseAgentEndedGo(t *testing.T) {
	w := newHarness(t, nil)
	waits, ended := w.makeSpare("waits"), w.makeSpare("ended")
	w.endAgent(ended)
	w.removed(ended)
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(waits), waits); err != nil {
		t.Errorf("the pod that waits: %v", err)
	}
}

func TestSchedulersAreKnownByTheirPods(t *testing.T) {
	c := newClient(t)
	r := &spareReconciler{client: c, namespace: newNamespace(t, c), service: "windlass-scheduler-peers"}
	found := func(want int) {
		t.Helper()
		if got, err := r.schedulers(t.Context()); err != nil || len(got) != want {
			t.Errorf("schedulers %v, %v; want %d", got, err, want)
		}
	}
	found(0)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "peers-1", Namespace: r.namespace, Labels: map[string]string{discoveryv1.LabelServiceName: r.service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "a"}},
			{Addresses: []string{"10.0.0.2"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: "b"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false)}},
		},
	}
	if err := c.Create(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	found(2)
	// A scheduler that is not named could be any of them.
	slice.Endpoints[0].TargetRef = nil
	if err := c.Update(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	found(0)
}
