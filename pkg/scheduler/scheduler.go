package scheduler

import (
	"context"
	"sync"
	"time"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/queue/broker"
)

// Scheduler serves the Scheduler service of the wire and runs the ticks. It is
// also told by the provisioner what became of instances.
type Scheduler struct {
	wirev1.UnimplementedSchedulerServer

	config  Config
	deps    Deps
	metrics *metrics

	mu        sync.Mutex
	functions map[string]*function
	// active are the functions that the next tick looks at.
	active map[*function]struct{}
	// gateways are the streams of tickets, by the gateway's claim address.
	gateways map[string]*offerStream

	// kicks are functions that need not wait for the next tick. A full
	// channel means that they do.
	kicks chan *function
}

// New makes a Scheduler. It starts nothing.
func New(config Config, deps Deps) (*Scheduler, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{
		config:    config,
		deps:      deps,
		functions: make(map[string]*function),
		active:    make(map[*function]struct{}),
		gateways:  make(map[string]*offerStream),
		kicks:     make(chan *function, 64),
	}
	s.metrics = newMetrics(deps.Registry, s)
	return s, nil
}

var _ provisioner.Events = (*Scheduler)(nil)

// Run follows the catalog and ticks until ctx ends. Then it retires all
// instances and refuses what waits.
func (s *Scheduler) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { _ = s.deps.Catalog.Watch(ctx, s.functionChanged) })
	ticker := time.NewTicker(s.config.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.tick()
		case f := <-s.kicks:
			s.tickFunction(f)
		case <-ctx.Done():
			watching.Wait()
			s.close()
			return nil
		}
	}
}

func (s *Scheduler) close() {
	for _, f := range s.all() {
		s.refuseAll(f, f.broker.Close("the scheduler is shutting down"), invoke.Refusal{
			Reason: invoke.RefusedNotOwner, Detail: "the scheduler is shutting down",
		})
	}
}

// functionChanged follows the catalog.
func (s *Scheduler) functionChanged(e catalog.Event) {
	if e.Function == nil {
		s.remove(e)
		return
	}
	s.mu.Lock()
	f, known := s.functions[e.UID]
	if !known {
		f = newFunction(e.Function, s.config, s.deps.Now)
		s.functions[e.UID] = f
	}
	s.mu.Unlock()
	if known {
		f.update(e.Function)
		s.deps.Instances.Forget(e.UID)
	}
	s.activate(f)
}

// remove forgets a function: its instances finish and go, and what waits is
// refused.
func (s *Scheduler) remove(e catalog.Event) {
	s.mu.Lock()
	f, known := s.functions[e.UID]
	delete(s.functions, e.UID)
	if known {
		delete(s.active, f)
	}
	s.mu.Unlock()
	if !known {
		return
	}
	s.refuseAll(f, f.broker.Close("the function was deleted"), invoke.Refusal{
		Reason: invoke.RefusedUnknownFunction, Detail: "the function was deleted",
	})
	for _, in := range s.deps.Instances.Instances(f.uid) {
		if in.State == provisioner.Creating {
			s.deps.Instances.Stop(in.Key)
		}
	}
	s.deps.Instances.Forget(f.uid)
	s.metrics.forget(e.Key)
}

// lookup returns a function, or nil.
func (s *Scheduler) lookup(uid string) *function {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.functions[uid]
}

func (s *Scheduler) all() []*function {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*function, 0, len(s.functions))
	for _, f := range s.functions {
		list = append(list, f)
	}
	return list
}

// activate lets the next tick look at a function.
func (s *Scheduler) activate(f *function) {
	if f.active.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.functions[f.uid] == f {
		s.active[f] = struct{}{}
	}
}

// kick lets a function that has calls and no instance be looked at now: what the
// next tick would decide is certain, and its first call would wait for it.
func (s *Scheduler) kick(f *function) {
	if counts := s.deps.Instances.Count(f.uid); counts.Created+counts.Creating > 0 {
		return
	}
	select {
	case s.kicks <- f:
	default:
	}
}

// StartFailed is told by the provisioner that an instance did not start. If no
// other one is there or under way, nothing that waits will be served.
func (s *Scheduler) StartFailed(key provisioner.Key, why provisioner.StartFailure) {
	f := s.lookup(key.FunctionUID)
	if f == nil {
		return
	}
	fn := f.current()
	s.deps.Log.Warn("an instance did not start", "function", fn.Key().String(), "cid", key.CID, "reason", why.Reason)
	s.metrics.startFailed(fn.Key())
	if counts := s.deps.Instances.Count(f.uid); counts.Creating+counts.Created > 0 {
		return
	}
	_, retryAfter, _ := s.deps.Instances.Failing(f.uid)
	s.refuseAll(f, f.broker.Clear(), cannotStart(why, retryAfter))
}

func cannotStart(why provisioner.StartFailure, retryAfter time.Duration) invoke.Refusal {
	return invoke.Refusal{
		Reason:     invoke.RefusedCannotStart,
		Detail:     "the function could not be started: " + why.String(),
		RetryAfter: retryAfter,
	}
}

// Gone is told by the provisioner that an instance ended after it had started.
func (s *Scheduler) Gone(key provisioner.Key, lost bool, why string) {
	f := s.lookup(key.FunctionUID)
	if f == nil {
		return
	}
	level := s.deps.Log.Info
	if lost {
		level = s.deps.Log.Warn
	}
	level("an instance is gone", "function", f.current().Key().String(), "cid", key.CID, "lost", lost, "reason", why)
	s.activate(f)
}

var _ Instances = (*provisioner.Provisioner)(nil)
var _ broker.Sink = (*pullStream)(nil)
