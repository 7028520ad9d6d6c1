package scheduler

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

// oneRuntime is the only one.
type oneRuntime struct {
	atomic.Pointer[v1alpha1.ClusterRuntime]
}

func only(rt *v1alpha1.ClusterRuntime) *oneRuntime {
	r := new(oneRuntime)
	r.Store(rt)
	return r
}

func (r *oneRuntime) List() []*v1alpha1.ClusterRuntime { return []*v1alpha1.ClusterRuntime{r.Load()} }

func (r *oneRuntime) NamespaceLabels(name string) map[string]string {
	return map[string]string{"kubernetes.io/metadata.name": name}
}

func (r *oneRuntime) Get(name string) (*v1alpha1.ClusterRuntime, bool) {
	rt := r.Load()
	return rt, rt.Name == name
}

// pythonWith is a Runtime with a warm pool of that size.
func pythonWith(size int32) *v1alpha1.ClusterRuntime {
	rt := &v1alpha1.ClusterRuntime{}
	rt.Name = "python3.13"
	rt.Spec.Image, rt.Spec.FileExtension = "python:1", "py"
	if size > 0 {
		rt.Spec.WarmPools = []v1alpha1.WarmPool{{Name: "small", Size: size}}
	}
	v1alpha1.DefaultClusterRuntime(rt)
	return rt
}

// inPython makes a function one that can take a spare instance.
func inPython(fn *v1alpha1.Function) {
	fn.Spec.Template.RuntimeRef.Name, fn.Spec.Template.Handler, fn.Spec.Template.Protocol = "python3.13", "app.handler", v1alpha1.ProtocolLambdaRuntime
	fn.Spec.Template.Code = &v1alpha1.Code{Inline: "def handler(event, context): return 'hello'"}
	fn.Spec.Template.Env = append(fn.Spec.Template.Env, v1alpha1.EnvVar{Name: "GREETING", Value: "hello"})
}

var testPool = warmpool.Pool{Scheduler: "self", Namespace: "ns", Runtime: "python3.13", Name: "small"}

func poolFunction(rt *v1alpha1.ClusterRuntime) *v1alpha1.Function {
	return warmpool.PoolFunction(testPool, rt)
}

// inPoolHarness runs body in a world with a Runtime whose warm pool has that size, and
// the functions f and g, which could take its instances.
func inPoolHarness(t *testing.T, size int32, config harnessConfig, body func(w *harness, rt *v1alpha1.ClusterRuntime, f, g *v1alpha1.Function)) {
	rt := pythonWith(size)
	config.runtimes = only(rt)
	inHarness(t, config, func(w *harness) {
		w.ownership.owns("self")
		f, g := w.put("f", inPython), w.put("g", inPython)
		w.after(computeSharesEvery + time.Second/2)
		body(w, rt, f, g)
	})
}

// helloSpare is the agent of a spare instance whose runtime waits.
func (w *harness) helloSpare(spec provisioner.InstanceSpec) *agent {
	w.t.Helper()
	a := w.connectHello(&agentwire.Hello{Spare: true, Token: podName(keyOf(string(spec.Function.UID), spec.CID))})
	a.key = keyOf(string(spec.Function.UID), spec.CID)
	return a
}

// become says hello as the function that an agent was assigned to, and asks for work.
func (a *agent) become() *agent {
	a.w.t.Helper()
	if a.assignment == nil {
		a.w.t.Fatalf("%s was not assigned", a.key.CID)
	}
	a.cut()
	b := a.w.connectHello(&agentwire.Hello{
		FunctionUid: a.assignment.GetFunctionUid(), Revision: a.assignment.GetRevision(),
		Cid: a.assignment.GetCid(), Token: podName(a.key),
	})
	b.pull(int32(a.assignment.GetConcurrency()))
	return b
}
