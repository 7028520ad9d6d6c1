package scheduler

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Instances are what the scheduler asks of the level below, by subject.
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

// InstancesOf are those of a Provisioner.
func InstancesOf(p *provisioner.Provisioner) Instances {
	return Instances{p, p, p, p, p, p, p, p, p, p, p, p}
}

// Launcher begins starts, and takes back those that are not over.
type Launcher interface {
	LaunchOn(fn *v1alpha1.Function, term invocation.Term, n int, place func() (node string, ok bool)) []provisioner.Key
	Assign(fn *v1alpha1.Function, term invocation.Term, pooled provisioner.Key, told func(key provisioner.Key, taken bool)) (provisioner.Key, bool)
	CancelLaunches(uid string, n int) []provisioner.Key
}

// Ender ends instances.
type Ender interface {
	End(key provisioner.Key, how provisioner.Ending)
}

// Custody says whose the instances of a function are.
type Custody interface {
	Adopt(fn *v1alpha1.Function)
	Release(uid string)
}

// Streams hears what the agents' streams show.
type Streams interface {
	Connect(key provisioner.Key)
	Disconnect(key provisioner.Key)
	Pulled(key provisioner.Key) (took time.Duration, first bool)
}

// Observer looks at one function's instances.
type Observer interface {
	Observe(uid string) provisioner.Observation
}

// Directory lists instances.
type Directory interface {
	Lookup(key provisioner.Key) (provisioner.Instance, bool)
	Instances(uid string) []provisioner.Instance
	Connected() map[provisioner.Key]bool
}

// Revisions hears what the catalog says of functions.
type Revisions interface {
	ResetBackoff(uid string)
	Forget(uid string)
}

// Moves tells which functions have instances that moved.
type Moves interface {
	Changed(uids []string) []string
	Placed(list []provisioner.Placed, uid string) []provisioner.Placed
	ResetChanged()
}

// NodeView is where instances may run.
type NodeView interface {
	Nodes() []provisioner.NodeLoad
	Candidates(fn *v1alpha1.Function) placement.Candidates
	Requests(fn *v1alpha1.Function) placement.Amount
}

// Identities tells whose an agent is.
type Identities interface {
	Check(key provisioner.Key, proof string) (provisioner.Instance, error)
	Recognize(proof string) (provisioner.Instance, error)
}

// Auditor compares what is believed with the level below; see package reconcile.
type Auditor interface {
	Reconcile() (repaired int)
	ReconcilePods(served []*v1alpha1.Function) (repaired int)
}

// Starts tells how far a start has come.
type Starts interface {
	Progress(key provisioner.Key) provisioner.Progress
}
