package scheduler

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
	"github.com/windlass-dev/windlass/pkg/scheduler/coldstart"
)

// stateCollector reads all series when it is asked.
type stateCollector struct{ s *Scheduler }

// Describe implements prometheus.Collector.
func (c stateCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range described {
		ch <- desc
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(ch chan<- prometheus.Metric) {
	c.collectSlots(ch)
	c.collectSpares(ch)
	c.collectNodes(ch)
	for _, f := range c.s.all() {
		c.collectFunction(ch, f)
	}
}

func tell(ch chan<- prometheus.Metric, s series, value float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(s.desc, s.kind, value, labels...)
}

// The labels that series of a function have beside its name and namespace. All functions
// share them.
var (
	creatingLabel = newLabel("state", "creating")
	busyLabel     = newLabel("state", "busy")
	idleLabel     = newLabel("state", "idle")
	leavingLabel  = newLabel("state", "leaving")
	stageLabels   = func() (labels [coldstart.NumStages]*dto.LabelPair) {
		for stage := range labels {
			labels[stage] = newLabel("stage", coldstart.Stage(stage).String())
		}
		return labels
	}()
)

// collectFunction tells of one function: of one that was never called, no more than
// that nothing is there.
func (c stateCollector) collectFunction(ch chan<- prometheus.Metric, f *function) {
	key := f.current().Key()
	counts, view, known := c.s.deps.Instances.Count(f.uid), f.broker.View(), f.reading()
	own := []*dto.LabelPair{newLabel("function", key.Name), newLabel("namespace", key.Namespace)}
	value := func(s series, value float64) { ch <- newSample(s, value, own) }
	by := func(s series, label *dto.LabelPair, value float64) {
		ch <- newSample(s, value, slices.Concat(own, []*dto.LabelPair{label}))
	}
	busy := min(view.Busy, counts.Created)
	value(queuedSeries, float64(view.Waiting))
	if view.Arrived > 0 {
		value(oldestSeries, view.OldestWait.Seconds())
		value(newestFirstSeries, number(view.NewestFirst))
	}
	by(instancesSeries, creatingLabel, float64(counts.Creating))
	by(instancesSeries, busyLabel, float64(busy))
	by(instancesSeries, idleLabel, float64(counts.Created-busy))
	by(instancesSeries, leavingLabel, float64(counts.Leaving))
	if known.means.Execution > 0 {
		value(executionSeries, known.means.Execution.Seconds())
	}
	if known.means.Start > 0 {
		value(startSeries, known.means.Start.Seconds())
	}
	for e, n := range known.tally {
		if n > 0 || view.Asked > 0 && (event(e) == instanceExpired || event(e) == pulledInVain) {
			value(eventSeries[e], float64(n))
		}
	}
	if view.Asked > 0 {
		value(pullsSeries, float64(view.Asked))
		value(pullsWaitingSeries, float64(view.Asking))
		value(backedOffSeries, float64(known.agents.backedOff))
		value(silentSeries, float64(counts.Silent))
	}
	if view.Arrived > 0 || known.tally[instanceOrdered] > 0 || known.terms.required > 0 {
		known.terms.collect(value, c.s.deps.Now())
	}
	known.agents.collect(value)
	if known.stages != nil {
		for stage, took := range known.stages {
			by(stageSecondsSeries, stageLabels[stage], took.Seconds())
		}
	}
}

// collect tells of them as long as they stand.
func (t terms) collect(value func(s series, value float64), now time.Time) {
	if !t.stand(now) {
		value(requiredSeries, 0)
		return
	}
	value(requiredSeries, float64(t.required))
	if t.rate > 0 {
		value(rateSeries, t.rate)
	}
	if t.horizon > 0 {
		value(horizonSeries, t.horizon.Seconds())
	}
}

func (c stateCollector) collectSlots(ch chan<- prometheus.Metric) {
	var owned, provisional, highest float64
	_, orphan := c.s.deps.Keeper.Orphan()
	for slot := range ownership.Slot(ownership.Slots) {
		term := c.s.term(slot)
		switch {
		case term == none:
			continue
		case term.Heir == "":
			owned++
		default:
			provisional++
		}
		highest = max(highest, float64(term.Epoch))
	}
	tell(ch, orphanSeries, number(orphan))
	tell(ch, slotsSeries, owned, "owner")
	tell(ch, slotsSeries, provisional, "heir")
	tell(ch, epochSeries, highest)
}

func (c stateCollector) collectSpares(ch chan<- prometheus.Metric) {
	for _, uid := range c.s.spares.uids() {
		p, _ := spare.PoolOf(uid)
		counts := c.s.deps.Instances.Count(uid)
		for state, n := range map[string]int{"starting": counts.Creating, "ready": counts.Created, "leaving": counts.Leaving} {
			tell(ch, sparesSeries, float64(n), p.Namespace, p.Runtime, state)
		}
	}
}

func (c stateCollector) collectNodes(ch chan<- prometheus.Metric) {
	for _, n := range c.s.deps.Instances.Nodes() {
		if n.Instances > 0 {
			tell(ch, nodeInstancesSeries, float64(n.Instances), n.Name)
		}
		if n.Allocatable.MilliCPU > 0 {
			tell(ch, nodeRequestedSeries, float64(n.Requested.MilliCPU)/float64(n.Allocatable.MilliCPU), n.Name, "cpu")
		}
		if n.Allocatable.Memory > 0 {
			tell(ch, nodeRequestedSeries, float64(n.Requested.Memory)/float64(n.Allocatable.Memory), n.Name, "memory")
		}
	}
}

// number is 1 for yes.
func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
