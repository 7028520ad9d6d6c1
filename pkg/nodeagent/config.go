package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// Config has the settings of an Agent.
type Config struct {
	// Calls are the settings of the order, the tickets and the slices.
	Calls callorder.Params
	// SampleEvery is how often the processor time of calls that compute is read while the node
	// is busy: up to a fifth of that earlier or later, so that messages save wake-ups. While no call
	// waits it is Mode.Every, if that is longer.
	SampleEvery time.Duration
	// StillEvery is how often agents whose calls wait hear that they do, and how often instances
	// in the low band are looked at.
	StillEvery time.Duration
	// Mode says when the node is busy.
	Mode ModeParams
	// Breath says what an instance that starves in the low band gets.
	Breath BreathParams
	// ExemptBelow is the mean processor time of a function's calls below which its agents stop
	// asking until the node is calm and busy again: an ask costs more than its order gains.
	ExemptBelow time.Duration
	// LatencyCritical are the namespaces whose instances may be latency-critical;
	// wellknown.AllNamespaces stands for every one.
	LatencyCritical []string
	// CoLocation says how batch instances are kept back beside latency-critical ones, on all cores of the
	// node; nil for not at all. The function CoLocation has what Windlass uses.
	CoLocation *colocate.Params
	// CoreNumbers are the numbers of these cores, in order; none if they are 0 and up.
	CoreNumbers []int
	// MaxAgents is how many streams there may be.
	MaxAgents int
	// HelloWithin is how long a stream may take to say who it is.
	HelloWithin time.Duration
}

// DefaultConfig returns what Windlass uses on a node with that many cores.
func DefaultConfig(cores int) Config {
	return Config{
		Calls:       callorder.DefaultParams(cores),
		SampleEvery: 5 * time.Millisecond,
		StillEvery:  100 * time.Millisecond,
		Mode:        ModeParams{Every: 10 * time.Millisecond, CalmEvery: 150 * time.Millisecond, Above: 3, Of: 4, CalmAfter: time.Second},
		Breath: BreathParams{
			Every: 400 * time.Millisecond, Least: 2 * time.Millisecond,
			Usage: 8 * time.Millisecond, Wall: 20 * time.Millisecond, Share: 0.1,
		},
		ExemptBelow: 2 * time.Millisecond,
		MaxAgents:   1000,
		HelloWithin: 5 * time.Second,
	}
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	errs := []error{c.Calls.Validate(), c.Mode.validate(), c.Breath.validate()}
	positive := func(name string, d time.Duration) {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("nodeagent: %s is %v: must be positive", name, d))
		}
	}
	positive("SampleEvery", c.SampleEvery)
	positive("StillEvery", c.StillEvery)
	positive("HelloWithin", c.HelloWithin)
	if c.ExemptBelow < 0 {
		errs = append(errs, fmt.Errorf("nodeagent: ExemptBelow is %v: must not be negative", c.ExemptBelow))
	}
	if c.CoLocation != nil {
		if err := c.CoLocation.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("nodeagent: CoLocation: %w", err))
		} else if c.CoLocation.Layout != colocate.Shared {
			errs = append(errs, fmt.Errorf("nodeagent: CoLocation has the layout %s: it must be %s", c.CoLocation.Layout, colocate.Shared))
		}
		if n := len(c.CoreNumbers); n > 0 && n != c.CoLocation.Cores {
			errs = append(errs, fmt.Errorf("nodeagent: CoreNumbers has %d cores, and CoLocation %d", n, c.CoLocation.Cores))
		}
	}
	if c.MaxAgents < 1 {
		errs = append(errs, fmt.Errorf("nodeagent: MaxAgents is %d: must be at least 1", c.MaxAgents))
	}
	return errors.Join(errs...)
}

// Group is where an instance computes: a control group, in general. The Agent calls it under its
// lock, so it must not wait.
type Group interface {
	// Usage is the processor time that the group has used so far.
	Usage() (time.Duration, error)
	// SetLow moves the group into the low band or back. It may be called again after an error, and in the low band,
	// from which others may have lifted it. An error that is errors.ErrUnsupported says that there are no bands, and is no failure.
	SetLow(low bool) error
	// Close sets the group to normal. The Agent calls it once.
	Close() error
}

// Hello is what an agent says of its instance, which is not proven.
type Hello struct {
	Token string
	// Namespace and Function name the function, and Name the instance.
	Namespace, Function, Name string
	// Cgroup is the inode number of the control group in which the agent sees itself; 0 if it does not say.
	Cgroup uint64
	// Concurrency is how many calls the function runs at a time; 0 if the agent does not say.
	Concurrency uint32
}

// Instance is an instance whose agent is who it says.
type Instance struct {
	Namespace, Function, Name string
	// Key tells the instance from all others of the node. It must be proven: an instance has one
	// stream at a time, whatever it says of itself.
	Key   string
	Group Group
	// MustAsk says that its calls ask for tickets, as those of functions with concurrency 1 do. What
	// it computes without a ticket is bounded while the node is busy.
	MustAsk bool
	// Waited is for how long threads of the instance could have run so far, and had no core; nil if
	// nothing can say that. It may become smaller. An error that is errors.ErrUnsupported says that
	// nothing says it here.
	Waited func() (time.Duration, error)
	// OpenHold opens what keeps the instance back; nil if nothing can. It is closed before Group is.
	OpenHold func() (Hold, error)
}

// Identifier knows the instances of the node.
type Identifier interface {
	// Identify checks who an agent at an address is, and opens its instance's group. The error is
	// for the agent; one with a gRPC status keeps its code.
	Identify(ctx context.Context, hello Hello, peer net.Addr) (Instance, error)
}

// Deps are the parts that an Agent uses.
type Deps struct {
	Instances Identifier
	// Runnable is how many threads of the node want to run, without the one that calls it:
	// LoadAvg.Runnable. While it fails, the node counts as calm, unless more calls wait than it has cores.
	Runnable func() (int, error)
	// Registry may be nil; then no metrics are kept.
	Registry prometheus.Registerer
	Log      *slog.Logger
	Now      func() time.Time
	// Alive is called after looks at the instances; nil for nothing. It says whether there are some: then
	// it is called again within ModeParams.CalmEvery. The Agent holds its lock, so it must not wait.
	Alive func(instances bool)
	// NewTimer makes what wakes it up, not set yet; nil for kerneltimer.Go. Run stops it.
	NewTimer func(due func()) kerneltimer.Waker
}
