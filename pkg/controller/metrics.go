package controller

import "github.com/prometheus/client_golang/prometheus"

// metrics are what the controller counts.
type metrics struct {
	schedulers   prometheus.Gauge
	statusWrites prometheus.Counter
	podsDeleted  *prometheus.CounterVec
	events       *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		schedulers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "windlass_controller_schedulers",
			Help: "Schedulers that tell the controller of their functions.",
		}),
		statusWrites: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "windlass_controller_status_writes_total",
			Help: "Writes of a Function's status.",
		}),
		podsDeleted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_controller_pods_deleted_total",
			Help: "Pods that the controller deleted, by why: their agent had ended, their Function's time to drain was over, or their scheduler is gone (of a spare instance).",
		}, []string{"why"}),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_controller_events_total",
			Help: "Events about Functions, by reason.",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.schedulers, m.statusWrites, m.podsDeleted, m.events} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
