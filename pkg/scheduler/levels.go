package scheduler

import (
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/reconcile"
)

// The levels that are the scheduler's own. Run's goroutine uses them.
type levels struct {
	streams  reconcile.Level[provisioner.Key]
	activity reconcile.Level[*function]
	gateways reconcile.Level[string]
}

// mendStreams compares which agents the inventory believes to be connected with the
// streams that there are. An instance that is wrongly believed to be connected would
// count as one that takes calls, and one that is connected as one that takes none.
func (s *Scheduler) mendStreams() int {
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

// mendActivity compares which functions rest with which of them need a tick.
func (s *Scheduler) mendActivity() int {
	awake, needy := reconcile.SetOf(s.actives()...), make(reconcile.Set[*function])
	for _, f := range s.all() {
		if _, served := s.serves(f); served && (f.broker.Waiting() > 0 || f.missed()) {
			needy.Add(f)
		}
	}
	asleep := s.own.activity.Look(reconcile.Difference[*function]{Unknown: reconcile.Compare(awake, needy).Unknown}).Unknown
	for f := range asleep {
		s.wake(f)
	}
	return len(asleep)
}

// mendTickets compares the gateways whose tickets wait with those that have a stream.
// A gateway that is gone wants none of its calls, but they would order instances until
// their deadlines; one that cannot be heard offers its tickets again.
func (s *Scheduler) mendTickets() (mended int) {
	believed, observed := make(reconcile.Set[string]), make(reconcile.Set[string])
	for _, f := range s.all() {
		f.broker.Gateways(believed.Add)
	}
	for gateway := range believed {
		if s.gateways.reach(gateway) != nil {
			observed.Add(gateway)
		}
	}
	gone := s.own.gateways.Look(reconcile.Compare(believed, observed)).Gone
	if len(gone) == 0 {
		return 0
	}
	for _, f := range s.all() {
		mended += f.broker.WithdrawAll(func(t invoke.Ticket) bool { return gone.Has(t.Gateway) })
	}
	return mended
}
