package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

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
	_, unconfirmed := c.s.deps.Ownership.Unconfirmed()
	for slot := range ownership.Slot(ownership.Slots) {
		term := c.s.term(slot)
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
	for _, uid := range c.s.spares.uids() {
		p, _ := warmpool.PoolOf(uid)
		counts := c.s.deps.Instances.Observe(uid)
		for state, n := range map[string]int{"starting": counts.Creating, "ready": counts.Created, "leaving": counts.Leaving} {
			emit(ch, sparesDecl, float64(n), p.Namespace, p.Runtime, p.Name, state)
		}
	}
}

func (c stateCollector) collectNodes(ch chan<- prometheus.Metric) {
	for _, n := range c.s.deps.Instances.Nodes() {
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
