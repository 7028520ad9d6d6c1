package scheduler

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
	"github.com/windlass-dev/windlass/pkg/queue"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// row has the values of one function's series. A scrape has one for each function, so it is a
// small value.
type row struct {
	counts provisioner.Counts
	metricsSnapshot
	// planValid says that the plan is recent enough to export.
	planValid bool
}

// rows reads the units that are served here, in the order of the labels of their series. No
// two have the same labels: one duplicate series would make the whole scrape fail.
func (r *reporter) rows() []row {
	now, all := r.shell.deps.Now(), r.shell.all()
	list := make([]row, 0, len(all))
	for _, u := range all {
		if r.shell.slots.term(u.slot) == notServed {
			continue
		}
		line := row{counts: r.shell.deps.Instances.Observe(u.uid).Counts, metricsSnapshot: u.metricsSnapshot(now)}
		line.planValid = line.plan.valid(now)
		if called(&line) {
			line.refusals.addWatched()
		}
		list = append(list, line)
	}
	slices.SortFunc(list, compareRows)
	return slices.CompactFunc(list, func(a, b row) bool { return compareRows(a, b) == 0 })
}

func compareRows(a, b row) int {
	return cmp.Or(strings.Compare(a.key.Name, b.key.Name), strings.Compare(a.key.Namespace, b.key.Namespace), strings.Compare(a.revision, b.revision))
}

// ofFunctions are the series of functions. A function that was never called has only those
// that say so.
var ofFunctions = slices.Concat([]functionSeries{
	one(queuedDecl.Declaration, always, func(r *row) float64 { return float64(r.view.Waiting) }),
	one(oldestDecl.Declaration, called, func(r *row) float64 { return r.view.OldestWait.Seconds() }),
	one(newestFirstDecl.Declaration, called, func(r *row) float64 { return boolValue(r.view.NewestFirst) }),
	{Declaration: instancesDecl.Declaration, Of: (*row).instances},
	one(executionDecl.Declaration, hasRun, func(r *row) float64 { return r.means.Execution.Seconds() }),
	{Declaration: executionsDecl, Of: (*row).executionSeries},
	one(startDecl.Declaration, hasStarted, func(r *row) float64 { return r.means.Start.Seconds() }),

	one(pullsDecl.Declaration, pulled, func(r *row) float64 { return float64(r.view.Requested) }),
	one(pullsWaitingDecl.Declaration, pulled, func(r *row) float64 { return float64(r.view.Credits) }),
	one(loansDecl.Declaration, pulled, func(r *row) float64 { return float64(r.view.Lent) }),
	one(backedOffDecl.Declaration, pulled, func(r *row) float64 { return float64(r.agents.backedOff) }),
	one(silentDecl.Declaration, pulled, func(r *row) float64 { return float64(r.counts.Disconnected) }),

	one(requiredDecl.Declaration, needed, (*row).required),
	one(rateDecl.Declaration, hasRate, func(r *row) float64 { return r.plan.rate }),
	one(horizonDecl.Declaration, hasHorizon, func(r *row) float64 { return r.plan.horizon.Seconds() }),
	by(decisionsDecl.Declaration, func(r *row) reasons { return r.decisions }),
	by(failedDecl.Declaration, func(r *row) reasons { return r.failures }),
	{Declaration: lostDecl.Declaration, Of: (*row).lost},
	by(refusedDecl.Declaration, func(r *row) reasons { return r.refusals }),
	{Declaration: phaseSecondsDecl.Declaration, Of: (*row).phaseSeconds},

	one(agentCallsDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.calls) }),
	one(agentBrokenDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.broken) }),
	one(agentCoreAsksDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.coreAsks) }),
	one(agentFailedOpenDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.coreTimeouts) }),
	one(agentRefusedDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.claimsRefused) }),
	one(agentReconnectsDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.reconnects) }),
	one(agentCPUDecl.Declaration, reported, func(r *row) float64 { return time.Duration(r.agents.cpu).Seconds() }),
	one(agentResidentDecl.Declaration, reported, func(r *row) float64 { return float64(r.agents.resident) }),
}, counterSeries())

type functionSeries = exposition.Series[row]

// When a series is there.
func always(*row) bool       { return true }
func called(r *row) bool     { return r.view.Arrived > 0 }
func pulled(r *row) bool     { return r.view.Requested > 0 }
func hasRun(r *row) bool     { return r.means.Execution > 0 }
func hasStarted(r *row) bool { return r.means.Start > 0 }
func reported(r *row) bool   { return r.agents.heard }
func hasRate(r *row) bool    { return r.planValid && r.plan.rate > 0 }
func hasHorizon(r *row) bool { return r.planValid && r.plan.horizon > 0 }
func needed(r *row) bool {
	return called(r) || r.counters[instanceLaunched] > 0 || r.plan.required > 0
}

// launched says that an instance has started or is about to. What counts starts is there before the first one
// is over: an increase misses what came before the first sample.
func launched(r *row) bool {
	return r.counters[instanceStarted]+r.counters[instanceLaunched]+r.counters[spareAssigned] > 0
}

// one is a series that a function has at most once.
func one(d metric.Declaration, there func(*row) bool, value func(*row) float64) functionSeries {
	return functionSeries{Declaration: d, Of: func(r *row, tell exposition.Tell) {
		if there(r) {
			tell(r.sample("", value(r)))
		}
	}}
}

// by are counters by reason.
func by(d metric.Declaration, counts func(*row) reasons) functionSeries {
	return functionSeries{Declaration: d, Of: func(r *row, tell exposition.Tell) {
		for _, c := range counts(r) {
			tell(r.sample(c.why, float64(c.n)))
		}
	}}
}

// lost are the counters of lost instances. The one of silent agents is there before the first one, because an
// alert must see that: an increase misses what came before the first sample.
func (r *row) lost(tell exposition.Tell) {
	if lost := r.losses; (launched(r) || pulled(r)) && (len(lost) == 0 || lost[0].why != v1alpha1.ReasonAgentSilent) {
		tell(r.sample(v1alpha1.ReasonAgentSilent, 0))
	}
	for _, c := range r.losses {
		tell(r.sample(c.why, float64(c.n)))
	}
}

// addWatched lets the counters of refused calls that alerts read be there before the first refusal: a scheduler can
// refuse a whole queue at once.
func (r *reasons) addWatched() {
	r.add(string(invocation.RefusedCannotStart), 0)
	r.add(string(invocation.RefusedNoCapacity), 0)
}

// counterSeries are the counters of events.
func counterSeries() (list []functionSeries) {
	for e, decl := range counterDecls {
		there := func(r *row) bool {
			switch counter(e) {
			case instanceStarted:
				return launched(r)
			case instanceExpired, leaveRequested:
				return r.counters[e] > 0 || pulled(r)
			}
			return r.counters[e] > 0
		}
		list = append(list, one(decl.Declaration, there, func(r *row) float64 { return float64(r.counters[e]) }))
	}
	return list
}

// sample is one sample of the unit. more is the value of the label that the series has beside
// name, namespace and revision, if any. All counters start when the function becomes known.
func (r *row) sample(more string, value float64) exposition.Sample {
	return exposition.Sample{Labels: exposition.Labels{r.key.Namespace, r.key.Name, r.revision, more}, Value: value, Since: r.countedSince}
}

// executionSeries are the series of execution times, if a call has run.
func (r *row) executionSeries(tell exposition.Tell) {
	if r.executions != nil {
		s := r.sample("", 0)
		s.Histogram = r.executions
		tell(s)
	}
}

func (r *row) instances(tell exposition.Tell) {
	busy := min(r.view.Busy, r.counts.Created)
	tell(r.sample("busy", float64(busy)))
	tell(r.sample("creating", float64(r.counts.Creating)))
	tell(r.sample("idle", float64(r.counts.Created-busy)))
	tell(r.sample("leaving", float64(r.counts.Leaving)))
}

func (r *row) required() float64 {
	if !r.planValid {
		return 0
	}
	return float64(r.plan.required)
}

// phasesByName are the phases in the order of their names.
var phasesByName = func() (list []coldstart.Phase) {
	for phase := range coldstart.NumPhases {
		list = append(list, phase)
	}
	slices.SortFunc(list, func(a, b coldstart.Phase) int { return strings.Compare(a.String(), b.String()) })
	return list
}()

func (r *row) phaseSeconds(tell exposition.Tell) {
	var spent coldstart.Durations
	switch {
	case r.phases != nil:
		spent = *r.phases
	case !launched(r):
		return
	}
	for _, phase := range phasesByName {
		tell(r.sample(phase.String(), spent[phase].Seconds()))
	}
}

// metricsSnapshot has the values of a function's metrics, without those of its instances.
type metricsSnapshot struct {
	key          invocation.FunctionKey
	revision     string
	countedSince time.Time
	view         queue.View
	means        estimate.Means
	counters     counters
	reasonCounters
	plan   lastPlan
	agents summary
	// phases is nil until an instance has started.
	phases *coldstart.Durations
	// executions is nil if no call has run.
	executions *exposition.Histogram
}

// planTTL is for how long a plan is exported when no more calls come. Calls come more rarely
// than decisions, and a decision without new calls makes no plan.
const planTTL = 10 * time.Second

// lastPlan has the inputs of the last decision that computed a number of needed instances.
type lastPlan struct {
	required int
	rate     float64
	horizon  time.Duration
	at       time.Time
}

// after is the plan after another decision. While calls wait, a decider that computes no
// number needs the existing instances and those that it creates.
func (t lastPlan) after(d autoscaler.Decision, s autoscaler.Snapshot, now time.Time) lastPlan {
	next := lastPlan{d.Required, d.Rate, d.Horizon, now}
	if next.required == 0 && s.Waiting() > 0 {
		next.required = s.Created + s.Creating + d.Create
	}
	if next.required == 0 && t.valid(now) {
		return t
	}
	return next
}

// valid reports whether the plan is recent enough to export.
func (t lastPlan) valid(now time.Time) bool {
	return t.required > 0 && now.Sub(t.at) < planTTL
}

// metricsSnapshot reads the values of a function's metrics.
func (u *unit) metricsSnapshot(now time.Time) metricsSnapshot {
	u.mu.Lock()
	defer u.mu.Unlock()
	r := metricsSnapshot{
		key: u.key, revision: u.revision, countedSince: u.countedSince, view: u.core.View(now), means: u.core.Means(),
		counters: u.stats.counters, reasonCounters: u.stats.byReason.clone(), plan: u.stats.plan, agents: u.stats.reports.sum(),
		executions: u.stats.executions.Clone(),
	}
	if u.stats.startPhases != nil {
		spent := *u.stats.startPhases
		r.phases = &spent
	}
	return r
}

// stateCollector reads the series of slots, spare instances and nodes at each scrape.
type stateCollector struct{ s *Scheduler }

// Describe implements prometheus.Collector.
func (c stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, gauge := range states {
		ch <- gauge.Desc()
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	c.collectSlots(ch)
	c.collectSpares(ch)
	c.collectNodes(ch)
	c.collectAgents(ch)
}

func emit(ch chan<- prometheus.Metric, gauge metric.Gauge, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(gauge.Desc(), prometheus.GaugeValue, value, labels...)
}

func (c stateCollector) collectSlots(ch chan<- prometheus.Metric) {
	var owned, acting, highest float64
	_, unconfirmed := c.s.shell.deps.Ownership.Unconfirmed()
	for slot := range ownership.Slot(ownership.Slots) {
		term := c.s.shell.slots.term(slot)
		switch {
		case term == notServed:
			continue
		case term.Standby == "":
			owned++
		default:
			acting++
		}
		highest = max(highest, float64(term.Epoch))
	}
	emit(ch, unconfirmedDecl, boolValue(unconfirmed))
	emit(ch, slotsDecl, owned, "owner")
	emit(ch, slotsDecl, acting, "standby")
	emit(ch, epochDecl, highest)
}

func (c stateCollector) collectSpares(ch chan<- prometheus.Metric) {
	for _, uid := range c.s.pools.spares.uids() {
		p, _ := warmpool.PoolOf(uid)
		counts := c.s.shell.deps.Instances.Observe(uid)
		for state, n := range map[string]int{"starting": counts.Creating, "ready": counts.Created, "leaving": counts.Leaving} {
			emit(ch, sparesDecl, float64(n), p.Namespace, p.Runtime, p.Name, state)
		}
	}
}

func (c stateCollector) collectNodes(ch chan<- prometheus.Metric) {
	for _, n := range c.s.shell.deps.Instances.Nodes() {
		if n.Instances > 0 {
			emit(ch, nodeInstancesDecl, float64(n.Instances), n.Name)
		}
		if n.Allocatable.MilliCPU > 0 {
			emit(ch, nodeRequestedDecl, float64(n.Requested.MilliCPU)/float64(n.Allocatable.MilliCPU), n.Name, "cpu")
		}
		if n.Allocatable.Memory > 0 {
			emit(ch, nodeRequestedDecl, float64(n.Requested.Memory)/float64(n.Allocatable.Memory), n.Name, "memory")
		}
	}
}

func boolValue(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
