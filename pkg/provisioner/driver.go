package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// InstanceSpec is all that a runtime needs to start one instance: the
// function's own code, and its agent beside it.
type InstanceSpec struct {
	// Function is the function as it was when the instance was ordered. It
	// is shared and must not be changed.
	Function *v1alpha1.Function
	// CID is the instance's id, unique within the function.
	CID invocation.CID
	// Token is the secret by which the agent proves itself to the scheduler,
	// unless its runtime gives it a better proof.
	Token string
	// Node is where it must run.
	Node string
}

// Exit says that an instance has ended, or that it never began.
type Exit struct {
	// FunctionUID and CID name the instance.
	FunctionUID string
	CID         invocation.CID
	// Code is one of the condition reasons of a Function, such as
	// v1alpha1.ReasonImagePullFailed; empty if none says more than that.
	Code string
	// Reason is for a person to read: which process ended and how.
	Reason string
	// LogTail are the last lines that the function wrote, at most 20.
	LogTail []string
}

// Driver runs instances. All of its methods return at once.
type Driver interface {
	// Start begins to start an instance. A failure is reported as an Exit,
	// like every other end of an instance: one Exit for each Start.
	Start(spec InstanceSpec)
	// Stop ends an instance: politely at first, by force soon after. An
	// instance that is unknown or has ended is no error.
	Stop(functionUID string, cid invocation.CID)
	// Exits tells of every instance that ended. It must be read without
	// delay.
	Exits() <-chan Exit
}

// Existing is an instance that a Shared runtime has found.
type Existing struct {
	CID invocation.CID
	// Revision is the Function.Revision that it was started for.
	Revision string
	Node     string
	Requests placement.Amount
	// Started is when it was started.
	Started time.Time
	// Ran says that it is known to have run already, so that its agent should
	// be heard of at once.
	Ran bool
	// Ending says that it is being stopped already.
	Ending bool
}

// AdoptingDriver is a runtime whose instances outlive the scheduler that started them
// and can be taken over by another one. Its methods return at once.
type AdoptingDriver interface {
	// Adopt takes over a function's instances and returns them. From then on
	// their ends are reported as Exits, as if this runtime had started them.
	Adopt(fn *v1alpha1.Function) []Existing
	// Release is the opposite: the function's instances go on, and somebody
	// else hears of their ends.
	Release(functionUID string)
}

// InstanceLister is a runtime that tells which instances it looks after.
type InstanceLister interface {
	// Instances are those that were started, taken or adopted here, and whose end
	// was not reported yet.
	Instances() []Key
}

// DriftDetector is a runtime whose instances may come and go unseen, and that compares those
// that it looks after with those that exist.
type DriftDetector interface {
	// Drift says which of them have been there and do not exist any more, and which
	// others exist of the given functions: neither looked after here, nor at their end.
	Drift(of []*v1alpha1.Function) reconcile.Difference[Key]
	// MarkGone says that an instance does not exist any more. It has its Exit.
	MarkGone(key Key)
}

// Assigner is a runtime that keeps spare instances. Those of a pool are started and
// stopped as if they were of a function; see spare.PoolFunction.
type Assigner interface {
	// Assign makes a spare instance of a pool an instance of a function, and then
	// calls told with whether it is. If it is not, nothing is left of either, and
	// neither has an Exit. It is false, and nothing is changed, if there is no such
	// spare instance. Told is not called if the instance is stopped, which its Exit
	// tells, or released before.
	Assign(poolUID string, cid invocation.CID, spec InstanceSpec, done func(taken bool)) bool
}

// Nodes tells where instances may run.
type Nodes interface {
	// Candidates are the nodes that instances of a function may use, with all
	// that is requested of each of them now. They depend on the function's
	// node selector and tolerations only, and are the caller's own. An
	// instance counts as soon as its Start has returned.
	Candidates(fn *v1alpha1.Function) placement.Candidates
	// Nodes are all nodes, with all that is requested of each of them now.
	Nodes() []placement.Node
}

// StartObserver is a runtime that sees how far the start of an instance has come.
type StartObserver interface {
	// Progress says when an instance that was started here was there, and when its
	// pod had a network; the zero time for what was not seen, or is none.
	Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time)
}
