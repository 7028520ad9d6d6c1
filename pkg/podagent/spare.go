package podagent

import (
	"context"
	"strings"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// identity is what an instance says of itself.
type identity struct {
	// spare says that it is of no function so far, and all else is empty.
	spare      bool
	uid        string
	generation int64
	cid        string
}

// assignment is what the core needs to know of one.
func assignment(wire *wirev1.Assignment) core.Assignment {
	return core.Assignment{
		StartupTimeout: time.Duration(wire.GetStartupTimeoutNs()),
		Concurrency:    int(wire.GetConcurrency()),
		BackoffAfter:   time.Duration(wire.GetBackoffAfterNs()),
		IdleTimeout:    time.Duration(wire.GetIdleTimeoutNs()),
	}
}

// assume makes a spare instance the function's. The core sees to it that it happens
// once, so that there is room in the channel. The caller holds the lock.
func (a *Agent) assume(to *wirev1.Assignment) {
	a.identity = identity{uid: to.GetFunctionUid(), generation: to.GetGeneration(), cid: to.GetCid()}
	a.deps.Log.Info("assigned", "function", to.GetFunction(), "cid", to.GetCid())
	a.assigned <- to
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

// forRuntime is what the runtime needs to know of an assignment.
func forRuntime(wire *wirev1.Assignment) adapter.Assignment {
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
