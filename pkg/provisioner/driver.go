package provisioner

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// InstanceSpec has everything that a driver needs to start one instance: the function's own
// code, and its agent beside it.
type InstanceSpec struct {
	// Function is the function at the launch. It is shared; drivers must not change it.
	Function *v1alpha1.Function
	// CID is the instance's id, unique within the function.
	CID invocation.CID
	// Token is the secret by which the agent proves itself to the scheduler, unless the driver
	// gives it a better proof.
	Token string
	// Node is where the instance must run.
	Node string
}

// Exit says that an instance has ended, or that it failed to start.
type Exit struct {
	// FunctionUID and CID name the instance.
	FunctionUID string
	CID         invocation.CID
	// Code is a condition reason of a Function, such as v1alpha1.ReasonImagePullFailed; empty
	// if no specific one applies.
	Code string
	// Reason explains to people which process ended and how.
	Reason string
	// LogTail has the last lines that the function wrote, at most 20. LogEmpty says that the
	// function ran and wrote none, as far as the driver knows; without it, an empty LogTail may
	// also be that of a function that never ran, or whose log is unknown.
	LogTail  []string
	LogEmpty bool
	// CutOff says that the cluster kept the instance from starting for a while, so that it may have
	// had too little time. Reason does not say it.
	CutOff bool
}

// Driver runs instances. All of its methods return at once.
type Driver interface {
	// Start begins to start an instance. Each Start has one Exit, which reports its failure or
	// any other end of the instance.
	Start(spec InstanceSpec)
	// Stop ends an instance: gracefully at first, by force soon after, sooner if it is known to
	// have finished its calls. An instance that is unknown or has ended is no error.
	Stop(functionUID string, cid invocation.CID, finished bool)
	// Exits receives the Exit of every instance. Its reader must not be slow.
	Exits() <-chan Exit
}

// Existing is an instance that an AdoptingDriver has found.
type Existing struct {
	CID invocation.CID
	// Revision is the Function.Revision that it was started for.
	Revision string
	Node     string
	Requests placement.Amount
	// Started is when it was started.
	Started time.Time
	// Ran says that it is known to have run before, so that its agent should connect soon.
	Ran bool
	// Ending says that it is already being stopped.
	Ending bool
}

// AdoptingDriver is a driver whose instances outlive the scheduler that started them, so that
// another scheduler can adopt them. Its methods return at once.
type AdoptingDriver interface {
	// Adopt takes over a function's instances and returns them. From then on their Exits come
	// as if this driver had started them.
	Adopt(fn *v1alpha1.Function) []Existing
	// Release is the opposite: the function's instances go on, and another scheduler receives
	// their Exits.
	Release(functionUID string)
}

// InstanceLister is a driver that lists its instances.
type InstanceLister interface {
	// Instances are those that were started, assigned or adopted here and have no Exit yet.
	Instances() []Key
}

// DriftDetector is a driver whose instances may come and go unnoticed, and that compares its
// instances with what exists.
type DriftDetector interface {
	// Drift returns the driver's instances that existed and no longer do, and the instances of
	// the given functions that exist, are not the driver's, and are not ending.
	Drift(of []Served) reconcile.Difference[Key]
	// MarkGone reports that an instance no longer exists, which yields its Exit.
	MarkGone(key Key)
}

// Assigner is a driver that keeps spare instances. It starts and stops those of a pool as if
// they belonged to a function; see warmpool.PoolFunction.
type Assigner interface {
	// Assign makes a spare instance of a pool an instance of a function, and then calls done.
	// Unless it is AssignTaken, neither instance exists any more, and neither has an Exit.
	// Assign returns false and changes nothing if the spare instance does not exist. done is
	// not called if the instance is stopped, which its Exit reports, or released before.
	Assign(poolUID string, cid invocation.CID, spec InstanceSpec, done func(AssignResult)) bool
}

// AssignResult is what became of the assignment of a spare instance.
type AssignResult int

const (
	// AssignTaken says that it is the function's.
	AssignTaken AssignResult = iota
	// AssignGone says that the spare instance is ending or has ended, which says nothing of others.
	AssignGone
	// AssignFailed says that the assignment of another one is likely to fail, too.
	AssignFailed
)

// Nodes returns where instances may run.
type Nodes interface {
	// Candidates are the nodes that instances of a function may use, with the present requests
	// on each. They depend only on the function's node selector and tolerations, and belong to
	// the caller. An instance counts as soon as its Start has returned.
	Candidates(fn *v1alpha1.Function) placement.Candidates
	// Nodes are all nodes with the present requests on each.
	Nodes() []placement.Node
}

// StartObserver is a driver that observes the progress of starts. An instance that it has not
// created is never late: the driver ends it if it cannot create it.
type StartObserver interface {
	// Progress returns at once when an instance that was started here was created, and when its
	// pod had its network; zero if not observed, or if it has none.
	Progress(functionUID string, cid invocation.CID) (created, sandboxed time.Time)
}
