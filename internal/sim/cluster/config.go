package cluster

import (
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/schedule"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Config is a simulation. It can be run any number of times.
type Config struct {
	// Seed of everything random.
	Seed uint64
	// Length is when the simulation ends, at least 0; 0 is when every call has had
	// its answer and no more will come.
	Length time.Duration
	// Nodes are the machines; none at all stands for one without bounds.
	Nodes []Nodes
	// Functions are the called functions, at least one.
	Functions []Function
	// Loads and Clients call them.
	Loads   []Load
	Clients []Clients
	// Decider decides how many instances to create. Functions may have their own.
	Decider autoscaler.Decider
	// Hash pushes calls to workers, the nodes, in place of pulling; no decider runs then. It
	// may be nil.
	Hash *Hash
	// Gateways is to how many gateways calls come, each to one of them at random, while
	// instances lend them their pulls; 0 for one queue at the scheduler to which all calls come
	// and all instances pull.
	Gateways int
	// GatewayWork is how long each call keeps the one processor of its gateway busy before it
	// can be handed over, and MessageDelay how long a message between gateways, scheduler and
	// instances is under way, at most MaxMessageDelay. ReportEvery is how often a gateway reports
	// to the scheduler, and looks for calls that have waited for long without a ticket; 0 is what
	// the product has. All must be 0 without Gateways.
	GatewayWork  time.Duration
	MessageDelay time.Duration
	ReportEvery  time.Duration
	// Overheads are what a call costs beside the work of its function.
	Overheads Overheads
	// Resolution is the time between two points of Result.Series; 0 for no series.
	Resolution time.Duration
	// Observe is called with every decision; it may be nil.
	Observe func(now time.Duration, function int, s autoscaler.Snapshot, d autoscaler.Decision)
}

// MaxMessageDelay is well below the time after which an agent gives up an unanswered claim.
const MaxMessageDelay = 100 * time.Millisecond

// DefaultReportEvery is what gateways of the product have.
const DefaultReportEvery = 100 * time.Millisecond

// Nodes are machines that are alike.
type Nodes struct {
	// Count is how many, at least 1.
	Count int
	// Allocatable is what instances may request on each.
	Allocatable placement.Amount
	// From is when they join.
	From time.Duration
	// Starts is how many instances may start on each at a time, while others wait
	// for their turn; 0 for any number.
	Starts int
	// Capacity is what the calls that run on one share; see Demand. Where it is
	// zero, they do not hinder each other.
	Capacity Demand
	// Order lets calls ask for one of its cores before they begin, as they do on a busy node with
	// a node agent; nil lets all begin at once. Its Cores are those of Capacity.CPU, which
	// must be at least one. Functions of higher concurrency do not ask.
	Order *callorder.Params
}

// Hash is hash-based scheduling; see package hashsch.
type Hash struct {
	// Controllers is the number of controllers, at least 1. Calls take turns with them.
	Controllers int
	// Slots is how many containers fit on a node, at least 1, whatever instances request.
	Slots int
	// Remove is how much longer a start takes if another container had to be removed for it.
	Remove time.Duration
}

// Demand is an amount of what calls on one machine share.
type Demand struct {
	// CPU in cores, IO and Network in whatever unit: only their proportion to the
	// capacity counts.
	CPU, IO, Network float64
}

// Function is a function, or several equal ones. Functions are numbered from 0 in the order of
// Config.Functions, copies one by one.
type Function struct {
	// Namespace is whose it is, for the division of room.
	Namespace string
	// Copies is how many functions are like this; 0 counts as 1.
	Copies int
	// Requests is what an instance takes of its node.
	Requests placement.Amount
	// Concurrency is how many calls an instance runs at a time; 0 counts as 1.
	Concurrency int
	// Work is how long a call takes on an instance, unless its load says so, and Start how
	// long an instance takes from its launch to its first pull.
	Work  Distribution
	Start Distribution
	// Demand is what a call takes of its machine's capacity while it runs alone.
	Demand Demand
	// Decider is this function's own; it may be nil.
	Decider autoscaler.Decider
	// Limits are the minimum and the maximum of instances.
	Limits autoscaler.Limits
	// BackoffAfter is how long an instance is idle before it backs off, IdleTimeout how
	// much longer before it leaves, and KeepLast how long the last one is idle; 0 is
	// what the product has by default.
	BackoffAfter time.Duration
	IdleTimeout  time.Duration
	KeepLast     time.Duration
	// Learns turns on the policy Learned of scaling.scaleDown, and Windows are those of
	// scaling.windows. A simulation begins at midnight UTC, January 1st, 1970, a Thursday.
	Learns  bool
	Windows []schedule.Window
	// Patience is how long a caller waits until its call is handed out; 0 for no limit. Where
	// calls are pushed, callers have no limit.
	Patience time.Duration
	// Runtime groups functions that share their mean start time until an instance of their own
	// has started.
	Runtime string
	// KnownWork and KnownStart are the means that are remembered from before; 0 if
	// there was no before.
	KnownWork  time.Duration
	KnownStart time.Duration
}

// Overheads are the times that a call spends within the platform, beside waiting for
// an instance.
type Overheads struct {
	// Admit is from the caller to the queue.
	Admit time.Duration
	// Claim is from being handed out to the begin of the work: the instance is busy
	// with the call already.
	Claim time.Duration
	// Answer is from the end of the work to the caller.
	Answer time.Duration
	// Pull is from the end of the work until the instance asks for more.
	Pull time.Duration
}

func orElse[T comparable](v *T, byDefault T) {
	var zero T
	if *v == zero {
		*v = byDefault
	}
}

func (f *Function) setDefaults() {
	orElse(&f.Copies, 1)
	orElse(&f.Concurrency, 1)
	orElse(&f.BackoffAfter, v1alpha1.BackoffAfter)
	orElse(&f.IdleTimeout, v1alpha1.DefaultIdleTimeout)
	orElse(&f.KeepLast, v1alpha1.DefaultLastInstanceIdleTimeout)
}
