package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// leaveGrace is how much longer than its calls may run a drained instance has to end.
const leaveGrace = 10 * time.Second

// Scheduler implements the wire's Scheduler service and runs the ticks. It receives the events
// of the provisioner.
//
// Only the goroutine of Run adds functions, removes them and launches instances, so that
// nothing is launched for a removed function.
type Scheduler struct {
	unimplemented
	shell    *shell
	pools    *warmPools
	ticker   *ticker
	sessions *sessions
	offers   *offers
	reporter *reporter
	auditor  *auditor

	slotEpochs slotEpochs
	// changes are the changes of the catalog.
	changes chan catalog.Event
}

// unimplemented has the methods of the wire's services that a Scheduler lacks.
type unimplemented struct {
	agentwire.UnimplementedInstancesServer
	controlwire.UnimplementedSchedulerServer
}

// New makes a Scheduler. It starts nothing.
func New(config Config, deps Deps) (*Scheduler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if deps.Traces == nil {
		deps.Traces = (*tracing.Tracer)(nil)
	}
	sh, spares, peers := newShell(config, deps), newSpares(), newPeerRoom(config.ID)
	placer, budget := newPlacer(sh, spares, peers), capacity.NewBudget(config.CreateRate, config.CreateBurst)
	pools := &warmPools{shell: sh, spares: spares, placer: placer, budget: budget}
	t := &ticker{shell: sh, placer: placer, budget: budget, pools: pools, peerRoom: peers, decisions: newDecisionLog()}
	s := &Scheduler{
		shell: sh, pools: pools, ticker: t,
		sessions: &sessions{sh, pools}, offers: &offers{sh}, reporter: &reporter{sh, t.decisions, pools}, auditor: newAuditor(sh, t),
		changes: make(chan catalog.Event),
	}
	sh.metrics = newMetrics(deps.Registry, s)
	return s, nil
}

var _ provisioner.Events = (*Scheduler)(nil)

// Run follows the catalog and ticks until ctx ends. It then refuses the waiting calls, and leaves
// the instances to the other schedulers of a cluster, even if there is none yet; in local mode it
// drains them. It returns an error only if it can no longer follow the catalog.
func (s *Scheduler) Run(ctx context.Context) error {
	watched := make(chan error, 1)
	go func() { watched <- s.watch(ctx) }()
	ticker := time.NewTicker(s.shell.config.Tick)
	defer ticker.Stop()
	audit := time.NewTicker(core.AuditEvery)
	defer audit.Stop()
	reconcile := time.NewTicker(core.ReconcileEvery)
	defer reconcile.Stop()
	audits := 0
	var rerouted <-chan struct{}
	if s.shell.deps.Router != nil {
		rerouted = s.shell.deps.Router.Changed()
	}
	for {
		select {
		case due := <-ticker.C:
			s.shell.metrics.observeLag(s.shell.deps.Now().Sub(due))
			s.ticker.tick()
		case <-audit.C:
			s.ticker.noteRun(s.shell.deps.Now())
			s.Resync()
			if audits++; audits%countSlotsEvery == 1 {
				s.countSlots()
			}
		case <-reconcile.C:
			s.auditor.reconcile()
		case <-rerouted:
			s.Resync()
			s.countSlots()
		case u := <-s.shell.triggers:
			s.ticker.runNow(u)
		case e := <-s.changes:
			s.functionChanged(e)
		case err := <-watched:
			if ctx.Err() != nil {
				s.close() // after a panic or an error, instances find another scheduler by themselves
				return nil
			}
			return fmt.Errorf("scheduler: following the catalog: %w", err)
		}
	}
}

// watch passes the catalog's changes to Run.
func (s *Scheduler) watch(ctx context.Context) error {
	return s.shell.deps.Catalog.Watch(ctx, func(e catalog.Event) {
		select {
		case s.changes <- e:
		case <-ctx.Done():
		}
	})
}

const reasonStopping = "the scheduler is shutting down"

func (s *Scheduler) close() {
	if s.shell.deps.Router != nil {
		s.shell.slots.stopped.Store(true)
		s.Resync()
		return
	}
	for _, u := range s.shell.all() {
		if _, served := s.shell.syncOwnership(u); !served {
			continue
		}
		s.shell.step(u, core.Closed{Reason: reasonStopping, Refusal: invocation.Refusal{Reason: invocation.RefusedNotOwner, Detail: reasonStopping}})
	}
}

// Pull serves one instance's pulls.
func (s *Scheduler) Pull(stream pullServer) error { return s.sessions.Pull(stream) }

// Offer serves one gateway's tickets.
func (s *Scheduler) Offer(stream offerServer) error { return s.offers.Offer(stream) }

// Watch streams the facts of the functions in the scheduler's slots until the stream ends.
func (s *Scheduler) Watch(request *controlwire.WatchRequest, stream watchServer) error {
	return s.reporter.Watch(request, stream)
}

// Report returns the last decisions on a function; false if no function has that name.
func (s *Scheduler) Report(key invocation.FunctionKey) (decisionlog.Report, bool) {
	return s.reporter.Report(key)
}

// Latest returns a decision on each function that had one in the last minute.
func (s *Scheduler) Latest() decisionlog.LatestReport { return s.reporter.Latest() }

// Status is what the scheduler observes of a function, or of a single unit.
func (s *Scheduler) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	return s.reporter.Status(fn)
}

// Known returns the facts about a unit's instances for a rollout that is decided in the same process.
func (s *Scheduler) Known(unit *v1alpha1.Function) rollout.Observation { return s.reporter.Known(unit) }

// Totals returns the totals of a unit, or the sums over all existing units of a function.
func (s *Scheduler) Totals(uid string) Totals { return s.reporter.Totals(uid) }

// Estimates returns the means of each unit whose slot this scheduler owns, for the next owner.
func (s *Scheduler) Estimates() []estimate.Unit { return s.reporter.Estimates() }

// Serving says whether others may rely on this scheduler: not before it has read the catalog,
// and not once it is about to stop.
func (s *Scheduler) Serving(yes bool) { s.shell.slots.serving.Store(yes) }

// RemoveSpares ends all spare instances and lets no more be created.
func (s *Scheduler) RemoveSpares() { s.pools.RemoveSpares() }
