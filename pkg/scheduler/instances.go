package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Instances is the scheduler's view of the provisioner, by subject.
type Instances struct {
	Launcher
	Ender
	Custody
	Streams
	Observer
	Directory
	Revisions
	Moves
	NodeView
	Identities
	Auditor
	Starts
}

// InstancesOf returns the parts of a Provisioner.
func InstancesOf(p *provisioner.Provisioner) Instances {
	return Instances{p, p, p, p, p, p, p, p, p, p, p, p}
}

// Launcher launches instances, and cancels launches that have not finished.
type Launcher interface {
	LaunchOn(fn *v1alpha1.Function, term invocation.Term, n int, place func() (node string, ok bool)) []provisioner.Key
	Assign(fn *v1alpha1.Function, term invocation.Term, pooled provisioner.Key, told func(key provisioner.Key, taken bool)) (provisioner.Key, bool)
	CancelLaunches(uid string, n int) []provisioner.Key
}

// Ender ends instances.
type Ender interface {
	End(key provisioner.Key, how provisioner.Ending)
}

// Custody adopts and releases the instances of a function.
type Custody interface {
	Adopt(fn *v1alpha1.Function)
	Release(uid string)
}

// Streams receives what agents' streams show.
type Streams interface {
	Connect(key provisioner.Key)
	Disconnect(key provisioner.Key)
	Pulled(key provisioner.Key) (took time.Duration, first bool)
}

// Observer observes one function's instances.
type Observer interface {
	Observe(uid string) provisioner.Observation
}

// Directory lists instances.
type Directory interface {
	Lookup(key provisioner.Key) (provisioner.Instance, bool)
	Instances(uid string) []provisioner.Instance
	Connected() map[provisioner.Key]bool
}

// Revisions receives the catalog's changes of functions.
type Revisions interface {
	ResetBackoff(uid string)
	Forget(uid string)
}

// Moves returns the functions whose instances have changed.
type Moves interface {
	Changed(uids []string) []string
	Placed(list []provisioner.Placed, uid string) []provisioner.Placed
	ResetChanged()
}

// NodeView returns the nodes on which instances may run.
type NodeView interface {
	Nodes() []provisioner.NodeLoad
	Candidates(fn *v1alpha1.Function) placement.Candidates
	Requests(fn *v1alpha1.Function) placement.Amount
}

// Identities authenticates agents.
type Identities interface {
	Check(key provisioner.Key, proof string) (provisioner.Instance, error)
	Recognize(proof string) (provisioner.Instance, error)
}

// Auditor compares the inventory with the level below; see package reconcile.
type Auditor interface {
	Reconcile() (repaired int)
	ReconcilePods(served []provisioner.Served, adopt func(uid string)) (repaired int)
}

// Starts returns the progress of a start.
type Starts interface {
	Progress(key provisioner.Key) provisioner.Progress
}
