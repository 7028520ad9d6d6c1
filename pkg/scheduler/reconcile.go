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

func (a *auditor) auditedLevels() []level {
	return []level{
		{"instance", a.shell.deps.Instances.Reconcile},
		{"pod", func() int { return a.shell.deps.Instances.ReconcilePods(a.served(), a.adopt) }},
		{"stream", a.repairStreams},
		{"activity", a.repairActivity},
		{"ticket", a.repairTickets},
	}
}

// served are the functions that this scheduler serves, and those of its warm pools.
func (a *auditor) served() (list []provisioner.Served) {
	for _, fn := range a.ticker.pools.spares.functions() {
		list = append(list, provisioner.Served{UID: uidOf(fn), Namespace: fn.Namespace})
	}
	for _, u := range a.shell.all() {
		if _, here := a.shell.syncOwnership(u); here {
			list = append(list, provisioner.Served{UID: u.uid, Namespace: u.readOutline().key.Namespace})
		}
	}
	return list
}

// adopt adopts the instances of a function or a pool.
func (a *auditor) adopt(uid string) {
	if u := a.shell.lookup(uid); u != nil {
		a.shell.deps.Instances.Adopt(u.fn())
		a.shell.releaseIfUnserved(u)
		return
	}
	for _, fn := range a.ticker.pools.spares.functions() {
		if uidOf(fn) == uid {
			a.shell.deps.Instances.Adopt(fn)
		}
	}
}

// reconcile checks every level once, unless the process was paused: events have yet to arrive
// then.
func (a *auditor) reconcile() {
	now := a.shell.deps.Now()
	a.ticker.noteRun(now)
	if a.ticker.pauses.Holding(now) {
		return
	}
	a.ticker.placer.invalidateUsage()
	a.restAll()
	for _, l := range a.levels {
		if repaired := l.repair(); repaired > 0 {
			a.shell.deps.Log.Warn("repaired state that missed an event", "kind", l.kind, "differences", repaired)
			a.shell.metrics.repaired(l.kind, repaired)
		}
	}
}

// restAll lets functions rest whose last stream has ended.
func (a *auditor) restAll() {
	streaming := make(map[string]bool)
	for key := range a.shell.streams.keys() {
		streaming[key.FunctionUID] = true
	}
	for _, u := range a.shell.all() {
		if !streaming[u.uid] {
			u.forgetStreams()
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
func (a *auditor) repairStreams() int {
	recorded, observed := make(reconcile.Set[provisioner.Key]), make(reconcile.Set[provisioner.Key])
	there := a.shell.streams.keys()
	for key, connected := range a.shell.deps.Instances.Connected() {
		if connected {
			recorded.Add(key)
		}
		if there.Has(key) {
			observed.Add(key)
		}
	}
	standing := a.own.streams.Look(reconcile.Compare(recorded, observed))
	for key := range standing.Gone {
		a.shell.deps.Instances.Disconnect(key)
	}
	for key := range standing.Unknown {
		a.shell.deps.Instances.Connect(key)
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
func (a *auditor) repairActivity() int {
	return a.audit(func(u *unit) core.Event { return core.ActivityAudited{Awake: a.shell.units.isActive(u)} })
}

// repairTickets makes each function compare the gateways of its waiting tickets with those
// that have a stream.
func (a *auditor) repairTickets() int {
	connected := core.GatewaysAudited{Connected: func(gateway string) bool { return a.shell.gateways.streamTo(gateway) != nil }}
	return a.audit(func(*unit) core.Event { return connected })
}

// audit feeds each function an event and returns how many differences were repaired.
func (a *auditor) audit(event func(*unit) core.Event) (repaired int) {
	for _, u := range a.shell.all() {
		if m, is := stepFor[core.Repaired](a.shell, u, event(u)); is {
			repaired += m.N
		}
	}
	return repaired
}
