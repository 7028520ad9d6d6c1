package scheduler

import (
	"context"
	"fmt"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
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
	*host
	*warmPools
	*ticker
	*sessions
	*offers
	*reporter
	*auditor

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
	h, spares, peers := newHost(config, deps), newSpares(), newPeerRoom(config.ID)
	pools := &warmPools{
		host: h, spares: spares, placer: newPlacer(h, spares, peers),
		budget: capacity.NewBudget(config.CreateRate, config.CreateBurst),
	}
	t := &ticker{host: h, warmPools: pools, peerRoom: peers, decisions: newDecisionLog()}
	s := &Scheduler{
		host: h, warmPools: pools, ticker: t,
		sessions: &sessions{h, pools}, offers: &offers{h}, reporter: &reporter{h, t.decisions, pools}, auditor: newAuditor(h, t),
		changes: make(chan catalog.Event),
	}
	h.metrics = newMetrics(deps.Registry, s)
	return s, nil
}

var _ provisioner.Events = (*Scheduler)(nil)

// Run follows the catalog and ticks until ctx ends. It then drains the instances of the
// functions that it owns and refuses their waiting calls. It returns an error only if it can
// no longer follow the catalog.
func (s *Scheduler) Run(ctx context.Context) error {
	watched := make(chan error, 1)
	go func() { watched <- s.watch(ctx) }()
	ticker := time.NewTicker(s.config.Tick)
	defer ticker.Stop()
	audit := time.NewTicker(core.AuditEvery)
	defer audit.Stop()
	reconcile := time.NewTicker(core.ReconcileEvery)
	defer reconcile.Stop()
	defer s.close()
	audits := 0
	var rerouted <-chan struct{}
	if s.deps.Router != nil {
		rerouted = s.deps.Router.Changed()
	}
	for {
		select {
		case due := <-ticker.C:
			s.metrics.observeLag(s.deps.Now().Sub(due))
			s.tick()
		case <-audit.C:
			s.noteRun(s.deps.Now())
			s.Resync()
			if audits++; audits%countSlotsEvery == 1 {
				s.countSlots()
			}
		case <-reconcile.C:
			s.reconcile()
		case <-rerouted:
			s.Resync()
			s.countSlots()
		case f := <-s.triggers:
			s.runNow(f)
		case e := <-s.changes:
			s.functionChanged(e)
		case err := <-watched:
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("scheduler: following the catalog: %w", err)
		}
	}
}

// watch passes the catalog's changes to Run.
func (s *Scheduler) watch(ctx context.Context) error {
	return s.deps.Catalog.Watch(ctx, func(e catalog.Event) {
		select {
		case s.changes <- e:
		case <-ctx.Done():
		}
	})
}

const reasonStopping = "the scheduler is shutting down"

func (s *Scheduler) close() {
	for _, f := range s.all() {
		if _, served := s.syncOwnership(f); !served {
			continue
		}
		s.step(f, core.Closed{Reason: reasonStopping, Refusal: invocation.Refusal{Reason: invocation.RefusedNotOwner, Detail: reasonStopping}})
	}
}
