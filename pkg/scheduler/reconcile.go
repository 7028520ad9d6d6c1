package scheduler

import (
	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// level is state that events keep up to date, and that an audit compares with its source (see
// package reconcile).
type level struct {
	kind string
	// repair compares once, repairs differences and returns their number. Only Run's goroutine
	// calls it.
	repair func() int
}

// auditor compares state with the level below it. Only Run's goroutine uses it.
type auditor struct {
	shell  *shell
	ticker *ticker
	own    levels
	levels []level
}

func newAuditor(sh *shell, t *ticker) *auditor {
	a := &auditor{shell: sh, ticker: t}
	a.levels = a.auditedLevels()
	return a
}

func (s *auditor) auditedLevels() []level {
	return []level{
		{"instance", s.shell.deps.Instances.Reconcile},
		{"pod", func() int { return s.shell.deps.Instances.ReconcilePods(s.served(), s.adopt) }},
		{"stream", s.repairStreams},
		{"activity", s.repairActivity},
		{"ticket", s.repairTickets},
	}
}

// served are the functions that this scheduler serves, and those of its warm pools.
func (s *auditor) served() (list []provisioner.Served) {
	for _, fn := range s.ticker.pools.spares.functions() {
		list = append(list, provisioner.Served{UID: uidOf(fn), Namespace: fn.Namespace})
	}
	for _, f := range s.shell.all() {
		if _, here := s.shell.syncOwnership(f); here {
			list = append(list, provisioner.Served{UID: f.uid, Namespace: f.readOutline().key.Namespace})
		}
	}
	return list
}

// adopt adopts the instances of a function or a pool.
func (s *auditor) adopt(uid string) {
	if f := s.shell.lookup(uid); f != nil {
		s.shell.deps.Instances.Adopt(f.fn())
		s.shell.releaseIfUnserved(f)
		return
	}
	for _, fn := range s.ticker.pools.spares.functions() {
		if uidOf(fn) == uid {
			s.shell.deps.Instances.Adopt(fn)
		}
	}
}

// reconcile checks every level once, unless the process was paused: events have yet to arrive
// then.
func (s *auditor) reconcile() {
	now := s.shell.deps.Now()
	s.ticker.noteRun(now)
	if s.ticker.pauses.Holding(now) {
		return
	}
	s.ticker.placer.invalidateUsage()
	s.restAll()
	for _, l := range s.levels {
		if repaired := l.repair(); repaired > 0 {
			s.shell.deps.Log.Warn("repaired state that missed an event", "kind", l.kind, "differences", repaired)
			s.shell.metrics.repaired(l.kind, repaired)
		}
	}
}

// restAll lets functions rest whose last stream has ended.
func (s *auditor) restAll() {
	streaming := make(map[string]bool)
	for key := range s.shell.streams.keys() {
		streaming[key.FunctionUID] = true
	}
	for _, f := range s.shell.all() {
		if !streaming[f.uid] {
			f.forgetStreams()
		}
	}
}

// levels are the scheduler's own levels. Run's goroutine uses them.
type levels struct {
	streams reconcile.Level[provisioner.Key]
}

// repairStreams compares which agents the inventory records as connected with the open
// streams. An instance that is wrongly recorded as connected would count as one that takes
// calls, and the other way round.
func (s *auditor) repairStreams() int {
	recorded, observed := make(reconcile.Set[provisioner.Key]), make(reconcile.Set[provisioner.Key])
	there := s.shell.streams.keys()
	for key, connected := range s.shell.deps.Instances.Connected() {
		if connected {
			recorded.Add(key)
		}
		if there.Has(key) {
			observed.Add(key)
		}
	}
	standing := s.own.streams.Look(reconcile.Compare(recorded, observed))
	for key := range standing.Gone {
		s.shell.deps.Instances.Disconnect(key)
	}
	for key := range standing.Unknown {
		s.shell.deps.Instances.Connect(key)
	}
	return len(standing.Gone) + len(standing.Unknown)
}

// keys are the instances that have a stream.
func (s *streams) keys() reconcile.Set[provisioner.Key] {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make(reconcile.Set[provisioner.Key], len(s.byKey))
	for key := range s.byKey {
		keys.Add(key)
	}
	return keys
}

// repairActivity makes each function compare whether it is parked with whether it needs a
// tick.
func (s *auditor) repairActivity() int {
	return s.audit(func(f *unit) core.Event { return core.ActivityAudited{Awake: s.shell.units.isActive(f)} })
}

// repairTickets makes each function compare the gateways of its waiting tickets with those
// that have a stream.
func (s *auditor) repairTickets() int {
	connected := core.GatewaysAudited{Connected: func(gateway string) bool { return s.shell.gateways.streamTo(gateway) != nil }}
	return s.audit(func(*unit) core.Event { return connected })
}

// audit feeds each function an event and returns how many differences were repaired.
func (s *auditor) audit(event func(*unit) core.Event) (repaired int) {
	for _, f := range s.shell.all() {
		if m, is := stepFor[core.Repaired](s.shell, f, event(f)); is {
			repaired += m.N
		}
	}
	return repaired
}
