package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// Config has the settings of a Scheduler.
type Config struct {
	// ID names this scheduler among the members. It may be empty if no other scheduler exists.
	ID string
	// Tick is the time between two decisions. Shorter reacts sooner and
	// costs more; the paper's is 100 ms.
	Tick time.Duration
	// MaxQueued is how many tickets of one function may wait; more are
	// refused with 429.
	MaxQueued int
	// ClaimGrace is how long an instance may hold a ticket unclaimed.
	ClaimGrace time.Duration
	// Executions is the number of recent executions, and of recent starts, that a mean covers:
	// the paper's N.
	Executions int
	// Decider is the default algorithm, a name that autoscaler.ByName knows.
	Decider string
	// NoRoomPatience is for how long nothing may change on the nodes before waiting calls of a
	// function without an instance are refused for lack of room.
	NoRoomPatience time.Duration
	// EvictAfter is how long an instance must have been idle before it may be evicted for
	// another function. For a function without instances, an instance that became idle after
	// the call had come may go earlier.
	EvictAfter time.Duration
	// CreateRate is the long-run number of launches per second, and CreateBurst the number at
	// once; all namespaces share them. 0 means that only room bounds them.
	CreateRate  float64
	CreateBurst int
}

// DefaultConfig follows the paper wherever the paper gives a value.
func DefaultConfig() Config {
	return Config{
		Tick:           core.DefaultTick,
		MaxQueued:      core.DefaultMaxQueued,
		ClaimGrace:     core.DefaultClaimGrace,
		Executions:     core.DefaultExecutions,
		Decider:        autoscaler.Default(),
		NoRoomPatience: capacity.DefaultPatience,
		EvictAfter:     capacity.DefaultEvictAfter,
	}
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	var errs []error
	if c.Tick <= 0 {
		errs = append(errs, fmt.Errorf("scheduler: Tick is %v: must be positive", c.Tick))
	}
	if c.MaxQueued < 1 {
		errs = append(errs, fmt.Errorf("scheduler: MaxQueued is %d: must be at least 1", c.MaxQueued))
	}
	if c.ClaimGrace <= 0 {
		errs = append(errs, fmt.Errorf("scheduler: ClaimGrace is %v: must be positive", c.ClaimGrace))
	}
	if c.Executions < 1 {
		errs = append(errs, fmt.Errorf("scheduler: Executions is %d: must be at least 1", c.Executions))
	}
	if _, known := autoscaler.ByName(c.Decider); !known {
		errs = append(errs, fmt.Errorf("scheduler: Decider is %q: must be %s", c.Decider, autoscaler.Choice()))
	}
	if c.NoRoomPatience < 0 {
		errs = append(errs, fmt.Errorf("scheduler: NoRoomPatience is %v: must not be negative", c.NoRoomPatience))
	}
	if c.EvictAfter <= 0 {
		errs = append(errs, fmt.Errorf("scheduler: EvictAfter is %v: must be positive", c.EvictAfter))
	}
	if c.CreateRate < 0 || c.CreateRate > 0 && c.CreateBurst < 2 {
		errs = append(errs, fmt.Errorf("scheduler: CreateRate is %v and CreateBurst %d: must be 0, or positive with a burst of 2 or more", c.CreateRate, c.CreateBurst))
	}
	return errors.Join(errs...)
}

// Ownership says which slots this scheduler owns, and in which epoch.
type Ownership interface {
	Epoch(slot ownership.Slot) (uint64, bool)
	// Unconfirmed reports whether nobody can confirm the ownership, and since when.
	Unconfirmed() (since time.Time, unconfirmed bool)
}

// EstimateStore has the execution and start times that previous owners measured.
type EstimateStore interface {
	// Restore returns the means of a unit, or else of other revisions of its function; 0 if
	// unknown.
	Restore(unit *v1alpha1.Function) estimate.Means
}

// Router says who serves a slot.
type Router interface {
	// Route reports known as false while no scheduler is known to serve the slot. acting says
	// that the owner is silent and to is its standby.
	Route(slot ownership.Slot) (to ownership.Owner, acting, known bool)
	// Map is the latest view of slots and members.
	Map() *ownership.Map
	// Changed is signalled after a route has changed.
	Changed() <-chan struct{}
}

// Deps are the parts that a Scheduler uses.
type Deps struct {
	Catalog   catalog.Reader
	Ownership Ownership
	// Router names the slots to serve as a standby, and the schedulers to redirect to. It is nil
	// in local mode, and only there: other schedulers may join the only one of a cluster.
	Router Router
	// Schedulers authenticates other schedulers. Without it, forwarded tickets are not
	// encrypted.
	Schedulers credentials.TransportCredentials
	// IsScheduler reports whether a caller is another scheduler, which may ask for room. If it
	// is nil, every caller may.
	IsScheduler func(ctx context.Context) bool
	Instances   *provisioner.Provisioner
	// Runtimes may be nil; then there are no warm pools.
	Runtimes Runtimes
	// Estimates may be nil.
	Estimates EstimateStore
	// Registry may be nil; then no metrics are kept.
	Registry prometheus.Registerer
	// Traces may be nil; then no traces are recorded.
	Traces Traces
	Log    *slog.Logger
	Now    func() time.Time
}

// Ender ends instances.
type Ender interface {
	End(key provisioner.Key, how provisioner.Ending)
}

// Requests returns what an instance of a function requests of its node.
type Requests interface {
	Requests(fn *v1alpha1.Function) placement.Amount
}

func uidOf(fn *v1alpha1.Function) string { return string(fn.UID) }

func keyOf(uid string, cid invocation.CID) provisioner.Key {
	return provisioner.Key{FunctionUID: uid, CID: cid}
}
