package scheduler

import (
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// metrics are the counters that do not belong to a function. It is nil without a Registry.
type metrics struct {
	ticks, lags, starts prometheus.Histogram
	phases              [coldstart.NumPhases]prometheus.Observer
	gained, lost        prometheus.Counter
	reconciled          *prometheus.CounterVec
	agentsReplaced      *prometheus.CounterVec
	// unreached counts refusals whose gateway has no stream, and unread those that its stream
	// had no room for.
	unreached, unread prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, s *Scheduler) *metrics {
	if reg == nil {
		return nil
	}
	phases, moves, unheard := phaseDecl.Vec(), slotMovesDecl.Vec(), unheardDecl.Vec()
	m := &metrics{
		ticks: ticksDecl.New(), lags: lagDecl.New(), starts: coldStartDecl.New(),
		reconciled: reconciledDecl.Vec(), agentsReplaced: agentsReplacedDecl.Vec(),
		gained: moves.WithLabelValues("gained"), lost: moves.WithLabelValues("lost"),
		unreached: unheard.WithLabelValues("NoStream"), unread: unheard.WithLabelValues("NotTaken"),
	}
	for phase := range coldstart.NumPhases {
		m.phases[phase] = phases.WithLabelValues(phase.String())
	}
	for _, l := range s.auditor.levels {
		m.reconciled.WithLabelValues(l.kind)
	}
	reg.MustRegister(m.ticks, m.lags, m.starts, phases, moves, unheard, m.reconciled, m.agentsReplaced,
		stateCollector{s}, exposition.NewCollector(ofFunctions, s.reporter.rows))
	return m
}

// observeLag records how late a tick begins.
func (m *metrics) observeLag(by time.Duration) {
	if m != nil {
		m.lags.Observe(max(0, by).Seconds())
	}
}

func (m *metrics) observeTick(took time.Duration) {
	if m != nil {
		m.ticks.Observe(took.Seconds())
	}
}

func (m *metrics) countSlotMoves(gained, lost int) {
	if m != nil {
		m.gained.Add(float64(gained))
		m.lost.Add(float64(lost))
	}
}

// repaired counts repaired differences.
func (m *metrics) repaired(kind string, n int) {
	if m != nil {
		m.reconciled.WithLabelValues(kind).Add(float64(n))
	}
}

func (m *metrics) countUnreached() {
	if m != nil {
		m.unreached.Inc()
	}
}

func (m *metrics) countUnread() {
	if m != nil {
		m.unread.Inc()
	}
}

// observeStart records the phases of a start.
func (m *metrics) observeStart(phases coldstart.Durations) {
	if m == nil {
		return
	}
	for phase, took := range phases {
		m.phases[phase].Observe(took.Seconds())
	}
	m.starts.Observe(phases.Total().Seconds())
}

// counter names an event that is counted for each function.
type counter int

const (
	instanceLaunched counter = iota
	launchDeferred
	spareAssigned
	instanceStarted
	instanceEvicted
	instanceCancelled
	instanceReleased
	instanceExpired
	leaveRequested
	placeRecalled
	ticketRebound

	numCounters
)

// counterDecls declares the counter of each event.
var counterDecls = [numCounters]metric.Counter{
	instanceLaunched: launchedDecl, launchDeferred: deferredDecl, spareAssigned: sparesAssignedDecl,
	instanceStarted: startedDecl, instanceEvicted: evictedDecl, instanceCancelled: cancelledDecl,
	instanceReleased: releasedDecl, instanceExpired: expiredDecl, leaveRequested: pullsInVainDecl, placeRecalled: recallsDecl, ticketRebound: reboundDecl,
}

// counters counts each event of a function.
type counters [numCounters]uint64

// reasonCounters count a function's events by reason: decisions to create instances, failed starts
// of instances, losses of started ones, and refusals of calls.
type reasonCounters struct{ decisions, failures, losses, refusals reasons }

// reasons counts by reason, sorted by reason: they are few, and mostly one.
type reasons []reasonCount

type reasonCount struct {
	why string
	n   uint64
}

func (r *reasons) add(why string, n int) {
	i, known := slices.BinarySearchFunc(*r, why, func(c reasonCount, why string) int { return strings.Compare(c.why, why) })
	if !known {
		*r = slices.Insert(*r, i, reasonCount{why: why})
	}
	(*r)[i].n += uint64(n)
}

// clone is nil, and allocates nothing, if nothing was counted.
func (t *reasonCounters) clone() reasonCounters {
	return reasonCounters{slices.Clone(t.decisions), slices.Clone(t.failures), slices.Clone(t.losses), slices.Clone(t.refusals)}
}

// increment adds n to the counter of an event.
func (u *unit) increment(e counter, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stats.counters[e] += uint64(n)
}
