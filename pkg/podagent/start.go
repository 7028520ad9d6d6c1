package podagent

import (
	"context"
	"strings"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// awaitFunction waits until the function can be called; in a spare instance, as
// soon as there is one.
func (a *Agent) awaitFunction(ctx context.Context) error {
	if a.config.Spare {
		return a.awaitAssignment(ctx)
	}
	return a.await(ctx, a.config.StartupTimeout, a.deps.Adapter.WaitReady, core.FunctionReady{})
}

// await waits for a time and tells the core what came of it.
func (a *Agent) await(ctx context.Context, patience time.Duration, wait func(context.Context) error, came core.Event) error {
	startCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := wait(startCtx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		a.deps.Log.Error("the function did not become ready", "err", err)
		a.tell(core.FunctionFailed{TimedOut: startCtx.Err() != nil, Detail: err.Error()})
		return err
	}
	a.tell(came)
	return nil
}

// awaitAssignment waits until the runtime is there, then until somebody needs it, and
// then until it has loaded the function.
func (a *Agent) awaitAssignment(ctx context.Context) error {
	if err := a.await(ctx, a.config.StartupTimeout, a.deps.Spare.WaitRuntime, core.RuntimeReady{}); err != nil {
		return err
	}
	select {
	case to := <-a.assigned:
		load := func(ctx context.Context) error {
			if err := a.deps.Spare.Assign(forRuntime(to)); err != nil {
				return err
			}
			return a.deps.Spare.WaitReady(ctx)
		}
		return a.await(ctx, time.Duration(to.GetStartupTimeoutNs()), load, core.FunctionReady{})
	case <-ctx.Done():
		return nil
	}
}

// assume makes a spare instance the function's. The core sees to it that it happens
// once, so that there is room in the channel. The caller holds the lock.
func (a *Agent) assume(to *agentwire.Assignment) {
	a.identity = identity{uid: to.GetFunctionUid(), revision: to.GetRevision(), cid: to.GetCid()}
	a.deps.Log.Info("assigned", "function", to.GetFunction(), "cid", to.GetCid())
	a.assigned <- to
}

// forRuntime is what the runtime needs to know of an assignment.
func forRuntime(wire *agentwire.Assignment) adapter.Assignment {
	namespace, name, _ := strings.Cut(wire.GetFunction(), "/")
	to := adapter.Assignment{Namespace: namespace, Function: name, Concurrency: int(wire.GetConcurrency())}
	for _, v := range wire.GetVariables() {
		to.Variables = append(to.Variables, adapter.Variable{Name: v.GetName(), Value: v.GetValue()})
	}
	for _, f := range wire.GetFiles() {
		to.Files = append(to.Files, adapter.File{Path: f.GetPath(), Content: f.GetContent()})
	}
	return to
}
