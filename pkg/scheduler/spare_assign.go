package scheduler

import (
	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// poolOf returns the UID of the pool that a function takes instances from, with its
// ClusterRuntime. A function whose last instance did not start takes none: its code would
// waste them. Nor does any function soon after an assignment failed: each further attempt would
// cost a spare instance, and an API server that is slow fails the next one, too.
func (w *warmPools) poolOf(u *unit, fn *v1alpha1.Function) (uid string, rt *v1alpha1.ClusterRuntime, ok bool) {
	if w.shell.deps.Runtimes == nil || fn.Spec.Template.RuntimeRef.Name == "" {
		return "", nil, false
	}
	rt, known := w.shell.deps.Runtimes.Get(string(fn.Spec.Template.RuntimeRef.Name))
	if !known {
		return "", nil, false
	}
	pool, _ := warmpool.Choose(fn, rt, w.shell.deps.Runtimes.NamespaceLabels(fn.Namespace))
	if pool == nil {
		return "", nil, false
	}
	uid = warmpool.Pool{Scheduler: w.shell.config.ID, Namespace: fn.Namespace, Runtime: rt.Name, Name: pool.Name}.UID()
	if w.shell.deps.Instances.Observe(u.uid).Failing || w.spares.assignBlocked(uid, w.shell.deps.Now()) {
		return "", nil, false
	}
	return uid, rt, true
}

// assignSpares assigns up to n spare instances to a function and returns the keys under which
// they count from now on.
func (w *warmPools) assignSpares(e *evaluation, n int) []provisioner.Key {
	uid, rt, ok := w.poolOf(e.unit, e.fn)
	if !ok {
		return nil
	}
	var keys []provisioner.Key
	for len(keys) < n {
		p := w.spares.pick(uid, w.shell.busyNodes.has)
		if p == nil {
			break
		}
		key, ok := w.shell.deps.Instances.Assign(e.fn, e.term, p.key, func(key provisioner.Key, result provisioner.AssignResult) {
			w.onAssigned(e.unit, e.fn, rt, p, key, result)
		})
		if !ok {
			// It has ended, which its stream will show, or it cannot be assigned now.
			w.spares.putBack(p)
			break
		}
		keys = append(keys, key)
	}
	if len(keys) > 0 {
		w.spares.markUnsettled(uid)
		w.shell.deps.Log.Info("assigned spare instances", "function", e.fn.Key().String(), "assigned", len(keys))
	}
	return keys
}

// onAssigned receives what became of an assignment.
func (w *warmPools) onAssigned(u *unit, fn *v1alpha1.Function, rt *v1alpha1.ClusterRuntime, p *spareStream, key provisioner.Key, result provisioner.AssignResult) {
	if result == provisioner.AssignTaken {
		u.increment(spareAssigned, 1)
		p.assign(assignment(fn, rt, key.CID))
		return
	}
	u.dropInstance(key.CID)
	w.shell.deps.Log.Debug("a spare instance could not be assigned; launching one instead", "function", fn.Key().String(), "cid", key.CID)
	p.close(errNotAssigned)
	if result == provisioner.AssignFailed {
		w.spares.blockAssign(p.key.FunctionUID, w.shell.deps.Now().Add(assignBlockTime))
	}
	w.shell.step(u, core.AssignFailed{CID: key.CID})
}

// assignment is the message that makes a spare instance an instance of a function.
func assignment(fn *v1alpha1.Function, rt *v1alpha1.ClusterRuntime, cid invocation.CID) *agentwire.Assignment {
	backoff, idle := fn.Spec.Scaling.ScaleDown.Idle()
	handover := podspec.AssignmentOf(podspec.Input{Function: fn, Runtime: rt, CID: cid})
	a := &agentwire.Assignment{
		FunctionUid: uidOf(fn), Function: fn.Key().String(), Revision: fn.Revision(), Cid: string(cid),
		Concurrency:      uint32(fn.Spec.Template.Concurrency),
		StartupTimeoutNs: int64(fn.Spec.Template.StartupTimeout.Duration),
		BackoffAfterNs:   int64(backoff),
		IdleTimeoutNs:    int64(idle),
		Class:            fn.Spec.Template.Scheduling.UnusualClass(),
		SliceNs:          int64(fn.Spec.Template.Scheduling.Slice.Duration),
	}
	for _, v := range handover.Variables {
		a.Variables = append(a.Variables, &agentwire.Variable{Name: v.Name, Value: v.Value})
	}
	for path, content := range handover.Files {
		a.Files = append(a.Files, &agentwire.File{Path: path, Content: content})
	}
	return a
}

// spareRoom is how many spare instances a function could get now.
func (w *warmPools) spareRoom(u *unit, fn *v1alpha1.Function) int {
	if uid, _, ok := w.poolOf(u, fn); ok {
		return w.spares.available(uid)
	}
	return 0
}

// nodesBusy reports whether an instance that a function gets now comes to a busy node: all with room
// are, and so are those of the spare instances that it could get.
func (w *warmPools) nodesBusy(u *unit, spec *unitSpec) bool {
	if !w.placer.nodesBusy(spec) {
		return false
	}
	uid, _, ok := w.poolOf(u, spec.fn)
	return !ok || !w.spares.onCalmNode(uid, w.shell.busyNodes.has)
}
