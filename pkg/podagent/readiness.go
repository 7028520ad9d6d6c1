package podagent

import (
	"context"
	"strings"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// awaitFunction waits until the function can be called. A spare instance waits for its
// assignment first.
func (a *Agent) awaitFunction(ctx context.Context) error {
	if a.config.Spare {
		return a.awaitAssignment(ctx)
	}
	return a.awaitStart(ctx, a.config.StartupTimeout, a.deps.Adapter.WaitReady, core.FunctionReady{})
}

// awaitStart runs wait with a timeout and passes the result to the core: ready, or
// core.FunctionFailed.
func (a *Agent) awaitStart(ctx context.Context, timeout time.Duration, wait func(context.Context) error, ready core.Event) error {
	startCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := wait(startCtx)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		a.deps.Log.Error("the function did not become ready", "err", err)
		a.notify(core.FunctionFailed{TimedOut: startCtx.Err() != nil, Detail: err.Error()})
		return err
	}
	a.notify(ready)
	return nil
}

// awaitAssignment waits until the runtime has loaded, then for the assignment, and then until
// the runtime has loaded the function.
func (a *Agent) awaitAssignment(ctx context.Context) error {
	if err := a.awaitStart(ctx, a.config.StartupTimeout, a.deps.Spare.WaitRuntime, core.RuntimeReady{}); err != nil {
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
		return a.awaitStart(ctx, time.Duration(to.GetStartupTimeoutNs()), load, core.FunctionReady{})
	case <-ctx.Done():
		return nil
	}
}

// applyAssignment gives a spare instance the identity of a function's instance. The core emits
// LoadFunction once, so the channel never blocks. The caller holds the lock.
func (a *Agent) applyAssignment(to *agentwire.Assignment) {
	a.identity = identity{
		uid: to.GetFunctionUid(), function: to.GetFunction(), revision: to.GetRevision(), cid: to.GetCid(),
		class: to.GetClass(), slice: time.Duration(to.GetSliceNs()), concurrency: int(to.GetConcurrency()),
	}
	a.deps.Log.Info("assigned", "function", to.GetFunction(), "cid", to.GetCid())
	close(a.named)
	a.assigned <- to
}

// forRuntime is the part of an assignment that the runtime needs.
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
