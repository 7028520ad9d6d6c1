package scheduler

import (
	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// The levels that are the scheduler's own. Run's goroutine uses them.
type levels struct {
	streams reconcile.Level[provisioner.Key]
}

// mendStreams compares which agents the inventory believes to be connected with the
// streams that there are. An instance that is wrongly believed to be connected would
// count as one that takes calls, and one that is connected as one that takes none.
func (s *auditor) mendStreams() int {
	believed, observed := make(reconcile.Set[provisioner.Key]), make(reconcile.Set[provisioner.Key])
	there := s.streams.keys()
	for key, connected := range s.deps.Instances.Connected() {
		if connected {
			believed.Add(key)
		}
		if there.Has(key) {
			observed.Add(key)
		}
	}
	standing := s.own.streams.Look(reconcile.Compare(believed, observed))
	for key := range standing.Gone {
		s.deps.Instances.Disconnect(key)
	}
	for key := range standing.Unknown {
		s.deps.Instances.Connect(key)
	}
	return len(standing.Gone) + len(standing.Unknown)
}

// keys are the instances that have a stream.
func (s *streams) keys() reconcile.Set[provisioner.Key] {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(reconcile.Set[provisioner.Key], len(s.of))
	for key := range s.of {
		keys.Add(key)
	}
	return keys
}

// mendActivity has each function compare whether it rests with whether it needs a tick.
func (s *auditor) mendActivity() int {
	return s.audit(func(f *function) core.Event { return core.ActivityAudited{Awake: s.functions.awake(f)} })
}

// mendTickets has each function compare the gateways whose tickets wait with those that
// have a stream.
func (s *auditor) mendTickets() int {
	heard := core.GatewaysAudited{Connected: func(gateway string) bool { return s.gateways.reach(gateway) != nil }}
	return s.audit(func(*function) core.Event { return heard })
}

// audit brings an event to each function and returns how much was mended.
func (s *auditor) audit(event func(*function) core.Event) (mended int) {
	for _, f := range s.all() {
		if m, is := ask[core.Repaired](s.host, f, event(f)); is {
			mended += m.N
		}
	}
	return mended
}
