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
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// Config is what a Scheduler needs to know.
type Config struct {
	// ID names this scheduler, as the Router knows it. It may be empty if
	// there is no other scheduler.
	ID string
	// Tick is the time between two decisions. Shorter reacts sooner and
	// costs more; the paper's is 100 ms.
	Tick time.Duration
	// MaxQueued is how many tickets of one function may wait; more are
	// refused with 429.
	MaxQueued int
	// ClaimGrace is how long an instance may hold a ticket unclaimed.
	ClaimGrace time.Duration
	// Executions is how many of the last executions the mean is taken of:
	// the paper's N. It is as many of the last starts.
	Executions int
	// Decider is the algorithm of functions that name none, as
	// autoscaler.ByName knows it.
	Decider string
	// NoRoomPatience is how long nothing may move on the nodes until calls are
	// refused that wait for room while their function has no instance at all.
	NoRoomPatience time.Duration
	// EvictAfter is how long an instance must have been idle before it may
	// be evicted to make room for another function. For a function without
	// instances, one that became idle after the call had come may go earlier.
	EvictAfter time.Duration
	// CreateRate is how many instances are launched in a second in the long
	// run, and CreateBurst how many at once; namespaces share them. 0 means
	// that only room bounds them.
	CreateRate  float64
	CreateBurst int
}

// DefaultConfig is the configuration of the paper where it has one.
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

// Validate says what is wrong with a Config.
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

// Ownership knows which slots this scheduler owns, and in which epoch.
type Ownership interface {
	Epoch(slot ownership.Slot) (uint64, bool)
	// Unconfirmed reports whether, and since when, etcd has not confirmed that the
	// slots are still owned here.
	Unconfirmed() (since time.Time, unconfirmed bool)
}

// EstimateStore has the estimates of other owners, or of before a restart.
type EstimateStore interface {
	// Restore returns the means of a unit, or else of other revisions of its function; a
	// mean is 0 if it is unknown.
	Restore(unit *v1alpha1.Function) estimate.Means
}

// Router knows which scheduler serves a slot.
type Router interface {
	// Route is false while no scheduler is known; acting says that it is not
	// the owner, which is silent, but its standby.
	Route(slot ownership.Slot) (to ownership.Owner, acting, known bool)
	// Map is what is known of slots and members.
	Map() *ownership.Map
	// Changed is signalled after a route has changed.
	Changed() <-chan struct{}
}

// Deps are what a Scheduler works with.
type Deps struct {
	Catalog   catalog.Reader
	Ownership Ownership
	// Router says for which slots this scheduler is the acting owner, and where to
	// send clients of other slots. If it is nil there is only this scheduler.
	Router Router
	// Schedulers says who other schedulers must prove to be. Without it, what
	// is passed on to them is not encrypted.
	Schedulers credentials.TransportCredentials
	// IsScheduler reports whether a call is another scheduler's, which may request
	// room. If it is nil, every client may.
	IsScheduler func(ctx context.Context) bool
	// Instances are what InstancesOf makes of a Provisioner.
	Instances Instances
	// Runtimes may be nil: then there are no spare instances.
	Runtimes Runtimes
	// Estimates may be nil.
	Estimates EstimateStore
	// Registry may be nil: then nothing is told.
	Registry prometheus.Registerer
	// Traces may be nil: then nothing is recorded.
	Traces Traces
	Log    *slog.Logger
	Now    func() time.Time
}

func uidOf(fn *v1alpha1.Function) string { return string(fn.UID) }

func keyOf(uid string, cid invocation.CID) provisioner.Key {
	return provisioner.Key{FunctionUID: uid, CID: cid}
}
