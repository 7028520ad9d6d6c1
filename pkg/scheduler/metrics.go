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

// metrics are what the scheduler counts beside what it counts for each function. It is nil
// if nobody wants to know.
type metrics struct {
	ticks, lags, starts prometheus.Histogram
	phases              [coldstart.NumPhases]prometheus.Observer
	gained, lost        prometheus.Counter
	reconciled          *prometheus.CounterVec
	agentsReplaced      *prometheus.CounterVec
	// Refusals that found no stream of their gateway, and such as it did not take.
	unreached, untaken prometheus.Counter
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
		unreached: unheard.WithLabelValues("NoStream"), untaken: unheard.WithLabelValues("NotTaken"),
	}
	for phase := range coldstart.NumPhases {
		m.phases[phase] = phases.WithLabelValues(phase.String())
	}
	for _, l := range s.levels {
		m.reconciled.WithLabelValues(l.kind)
	}
	reg.MustRegister(m.ticks, m.lags, m.starts, phases, moves, unheard, m.reconciled, m.agentsReplaced,
		stateCollector{s}, exposition.NewCollector(ofFunctions, s.rows))
	return m
}

// late notes how much later than due a tick begins.
func (m *metrics) late(by time.Duration) {
	if m != nil {
		m.lags.Observe(max(0, by).Seconds())
	}
}

func (m *metrics) ticked(took time.Duration) {
	if m != nil {
		m.ticks.Observe(took.Seconds())
	}
}

func (m *metrics) moved(gained, lost int) {
	if m != nil {
		m.gained.Add(float64(gained))
		m.lost.Add(float64(lost))
	}
}

// mended notes differences that were mended.
func (m *metrics) mended(kind string, n int) {
	if m != nil {
		m.reconciled.WithLabelValues(kind).Add(float64(n))
	}
}

// notReached counts a refusal that found no stream of its gateway.
func (m *metrics) notReached() {
	if m != nil {
		m.unreached.Inc()
	}
}

// notTaken counts a refusal that its gateway's stream had no room for.
func (m *metrics) notTaken() {
	if m != nil {
		m.untaken.Inc()
	}
}

// started notes how the start of an instance went.
func (m *metrics) started(phases coldstart.Durations) {
	if m == nil {
		return
	}
	for phase, took := range phases {
		m.phases[phase].Observe(took.Seconds())
	}
	m.starts.Observe(phases.Total().Seconds())
}

// event is something that is counted for a function.
type event int

const (
	instanceOrdered event = iota
	orderDeferred
	spareTaken
	instanceStarted
	instanceEvicted
	instanceWithdrawn
	instanceReleased
	instanceExpired
	pulledInVain

	events
)

// eventDecls are the counters that tell of events.
var eventDecls = [events]metric.Counter{
	instanceOrdered: orderedDecl, orderDeferred: deferredDecl, spareTaken: sparesTakenDecl,
	instanceStarted: startedDecl, instanceEvicted: evictedDecl, instanceWithdrawn: withdrawnDecl,
	instanceReleased: releasedDecl, instanceExpired: expiredDecl, pulledInVain: pullsInVainDecl,
}

// tally is how often each event happened to a function.
type tally [events]uint64

// tallies are how often something happened to a function by reason: decisions to create
// instances, failures of instances and refusals of calls.
type tallies struct{ decisions, failures, refusals reasons }

// reasons counts by reason, in the order of the reasons: they are few, and mostly one.
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

// clone is nil, and allocates nothing, if nothing happened.
func (t *tallies) clone() tallies {
	return tallies{slices.Clone(t.decisions), slices.Clone(t.failures), slices.Clone(t.refusals)}
}

// note counts an event that happened n times.
func (f *function) note(e event, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.book.tally[e] += uint64(n)
}
