//go:build apiserver

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/apitest"
)

// statusHarness is a function of the API server whose status is what plan says, by what a test
// lets be known of it.
type statusHarness struct {
	*harness
	f  *v1alpha1.Function
	in input
}

func newStatusHarness(t *testing.T, c client.Client) *statusHarness {
	w := &harness{Client: c, t: t, namespace: newNamespace(t, c)}
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Image: "a:1"}}}
	f.Name, f.Finalizers = "f", []string{wellknown.FinalizerDrain}
	w.make(f)
	t.Cleanup(func() { w.release(f) })
	return &statusHarness{harness: w, f: f, in: input{now: now}}
}

// release lets a function that is being deleted go.
func (w *harness) release(f *v1alpha1.Function) {
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(w.Patch(context.WithoutCancel(w.t.Context()), f, patch)); err != nil {
		w.t.Error(err)
	}
}

// deploy changes the image.
func (s *statusHarness) deploy(image string) {
	s.t.Helper()
	s.f.Spec.Template.Image = image
	if err := s.Update(s.t.Context(), s.f); err != nil {
		s.t.Fatal(err)
	}
}

// known carries out the plan, by what is known of the revision of each number.
func (s *statusHarness) known(units map[int64]facts) {
	s.t.Helper()
	s.in.function, s.in.units = s.f, make(map[string]facts)
	if r := revisionOf(s.f); len(s.in.revisions) == 0 || !s.in.revisions[len(s.in.revisions)-1].Is(s.f) {
		s.in.revisions = append(s.in.revisions, r)
	}
	for number, observed := range units {
		observed.generation = s.f.Generation
		s.in.units[v1alpha1.RevisionName("f", number)] = observed
	}
	s.in = carriedOut(s.in)
	s.f.Status = s.in.function.Status
	if err := s.Status().Update(s.t.Context(), s.f); err != nil {
		s.t.Fatal(err)
	}
}

func (s *statusHarness) later(d time.Duration) { s.in.now = s.in.now.Add(d) }

// assessment is what tools make of the function.
type assessment struct {
	// wait and revision say whether kubectl waits no longer for Ready and RevisionReady.
	wait, revision bool
	// kstatus is what Flux, Helm and kpt go by.
	kstatus status.Status
	argo    string
}

func (s *statusHarness) assess() assessment {
	s.t.Helper()
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.KindFunction))
	if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(s.f), u); err != nil {
		s.t.Fatal(err)
	}
	result, err := status.Compute(u)
	if err != nil {
		s.t.Fatal(err)
	}
	return assessment{
		wait: s.waits(v1alpha1.ConditionReady), revision: s.waits(v1alpha1.ConditionRevisionReady),
		kstatus: result.Status, argo: argoHealth(s.t, u),
	}
}

// waits tells whether kubectl wait is content with the function.
func (s *statusHarness) waits(kind string) bool {
	s.t.Helper()
	return waits(s.t, s.namespace, "functions.windlass.dev/f", kind)
}

// waits tells whether kubectl wait is content with an object, such as
// functions.windlass.dev/f.
func waits(t *testing.T, namespace, object, kind string) bool {
	t.Helper()
	kubectl := filepath.Join(apitest.Programs(t, "kubectl"), "kubectl")
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(config, environment.env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", config, "--namespace", namespace,
		"wait", "--for=condition="+kind, "--timeout=0", object)
	text, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	return err == nil
}

// argoHealth is what Argo CD says with the script of the chart.
func argoHealth(t *testing.T, u *unstructured.Unstructured) string {
	t.Helper()
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", luaValue(l, u.Object))
	if err := l.DoFile(filepath.Join("..", "..", "charts", "windlass", "argocd-health.lua")); err != nil {
		t.Fatal(err)
	}
	health := l.CheckTable(-1)
	if health.RawGetString("message").String() == "" {
		t.Error("Argo CD has no message")
	}
	return health.RawGetString("status").String()
}

// luaValue is a value of JSON in Lua.
func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		t := l.NewTable()
		for name, field := range v {
			t.RawSetString(name, luaValue(l, field))
		}
		return t
	case []any:
		t := l.NewTable()
		for _, item := range v {
			t.Append(luaValue(l, item))
		}
		return t
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	default:
		return lua.LNil
	}
}

func TestToolsJudgeAFunctionAsAPersonDoes(t *testing.T) {
	serving, idle := facts{created: 2, started: true}, facts{started: true}
	broken := facts{problem: problem{v1alpha1.ReasonFunctionExited, "exit code 1"}}
	var (
		works   = assessment{true, true, status.CurrentStatus, "Healthy"}
		rolling = assessment{false, false, status.InProgressStatus, "Progressing"}
		failed  = assessment{false, false, status.FailedStatus, "Degraded"}
	)
	good := func(s *statusHarness) { s.known(map[int64]facts{1: serving}) }
	update := func(s *statusHarness, observed facts) {
		good(s)
		s.deploy("a:2")
		s.known(map[int64]facts{1: serving, 2: observed})
	}
	deadline := func(s *statusHarness, units map[int64]facts) {
		s.later(v1alpha1.DefaultProgressDeadline)
		s.known(units)
	}
	for name, c := range map[string]struct {
		happens func(*statusHarness)
		want    assessment
	}{
		"no controller has come":  {func(*statusHarness) {}, rolling},
		"its first instance":      {func(s *statusHarness) { s.known(map[int64]facts{1: {creating: 1}}) }, rolling},
		"good code, scaled to 0":  {func(s *statusHarness) { s.known(map[int64]facts{1: idle}) }, works},
		"broken code":             {func(s *statusHarness) { s.known(map[int64]facts{1: broken}) }, rolling},
		"broken code for long":    {func(s *statusHarness) { s.known(map[int64]facts{1: broken}); deadline(s, map[int64]facts{1: broken}) }, failed},
		"an update on its way":    {func(s *statusHarness) { update(s, facts{creating: 1}) }, assessment{true, false, status.InProgressStatus, "Progressing"}},
		"an update that works":    {func(s *statusHarness) { update(s, idle) }, works},
		"an update not looked at": {func(s *statusHarness) { good(s); s.deploy("a:2") }, rolling},
		"a broken update": {func(s *statusHarness) { update(s, broken); deadline(s, map[int64]facts{1: serving, 2: broken}) },
			assessment{true, false, status.FailedStatus, "Degraded"}},
		"one that is mended": {func(s *statusHarness) {
			update(s, broken)
			deadline(s, map[int64]facts{1: serving, 2: broken})
			s.deploy("a:3")
			s.known(map[int64]facts{1: serving, 2: {}, 3: {creating: 1}})
		}, assessment{true, false, status.InProgressStatus, "Progressing"}},
		"an invalid spec": {func(s *statusHarness) { s.f.Spec.Template.Args = []string{"\x00"}; s.deploy("a:1"); s.known(nil) }, failed},
		"a runtime that there is not": {func(s *statusHarness) {
			s.f.Spec.Template = v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: "ruby3.4"}, Handler: "a.b", Code: &v1alpha1.Code{Inline: "a"}, Protocol: v1alpha1.ProtocolHTTP}
			if err := s.Update(s.t.Context(), s.f); err != nil {
				s.t.Fatal(err)
			}
			s.known(nil)
		}, failed},
		"a revision that there is not": {func(s *statusHarness) {
			good(s)
			s.f.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "live", Weight: 100, RevisionName: "f-00099"}}
			s.deploy("a:1")
			s.known(map[int64]facts{1: serving})
		}, assessment{true, true, status.FailedStatus, "Degraded"}},
		"one that needs no proof": {func(s *statusHarness) {
			s.f.Spec.Rollout.Verify = v1alpha1.VerifyNone
			s.deploy("a:1")
			s.known(map[int64]facts{1: {}})
		}, works},
		"a proof without room": {func(s *statusHarness) { update(s, facts{noRoom: "no node is ready"}) },
			assessment{true, false, status.InProgressStatus, "Progressing"}},
		"one that is mended, in use": {func(s *statusHarness) {
			update(s, broken)
			deadline(s, map[int64]facts{1: serving, 2: broken})
			s.deploy("a:3")
			s.known(map[int64]facts{1: serving, 2: {}, 3: {created: 1, started: true}})
		}, works},
		"a burst": {func(s *statusHarness) {
			s.known(map[int64]facts{1: idle})
			s.known(map[int64]facts{1: {creating: 20, started: true, waiting: true}})
		}, works},
		"the cluster is full": {func(s *statusHarness) { s.known(map[int64]facts{1: {noRoom: "no node is ready"}}) }, rolling},
		"etcd is away":        {func(s *statusHarness) { s.known(map[int64]facts{1: {created: 1, started: true, unconfirmed: true}}) }, works},
		"some starts fail": {func(s *statusHarness) {
			s.known(map[int64]facts{1: {created: 8, started: true, problem: broken.problem}})
		}, works},
		"the scheduler is gone": {func(s *statusHarness) { good(s); s.later(time.Hour); s.known(nil) },
			assessment{false, true, status.InProgressStatus, "Progressing"}},
		"it is being deleted": {func(s *statusHarness) {
			good(s)
			if err := s.Delete(s.t.Context(), s.f); err != nil {
				s.t.Fatal(err)
			}
			if err := s.Get(s.t.Context(), client.ObjectKeyFromObject(s.f), s.f); err != nil {
				s.t.Fatal(err)
			}
			s.known(map[int64]facts{1: serving})
		}, assessment{false, false, status.TerminatingStatus, "Progressing"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStatusHarness(t, newClient(t))
			c.happens(s)
			if diff := cmp.Diff(c.want, s.assess(), cmp.AllowUnexported(assessment{})); diff != "" {
				text, _ := json.MarshalIndent(s.f.Status, "", "  ")
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}
