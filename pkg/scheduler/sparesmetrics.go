package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/provisioner/spare"
)

func (m *metrics) tookSpare(key invoke.FunctionKey) {
	m.taken.WithLabelValues(key.Namespace, key.Name).Inc()
}

func (c stateCollector) collectSpares(ch chan<- prometheus.Metric) {
	for _, uid := range c.s.spares.uids() {
		p, _ := spare.PoolOf(uid)
		counts := c.s.deps.Instances.Count(uid)
		for state, n := range map[string]int{"starting": counts.Creating, "ready": counts.Created, "leaving": counts.Leaving} {
			ch <- prometheus.MustNewConstMetric(sparesDesc, prometheus.GaugeValue, float64(n), p.Namespace, p.Runtime, state)
		}
	}
}
