package controller

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
)

// Metrics declares the metrics of the controller.
var Metrics metric.Set

var (
	schedulersNow = Metrics.Gauge(metric.Stable, "windlass_controller_schedulers",
		"Schedulers that report to the controller.")
	statusWritesTotal = Metrics.Counter(metric.Stable, "windlass_controller_status_writes_total",
		"Status updates of Functions, ClusterRuntimes and FunctionRevisions, and updates of the scale of FunctionRevisions.")
	podsDeletedTotal = Metrics.Counter(metric.Experimental, "windlass_controller_pods_deleted_total",
		"Pods that the controller deleted, by reason: the agent had ended (AgentEnded), the Function's time to drain was over (DrainTimedOut), the revision has no calls any more and no scheduler ended its pods (RevisionRetired), the scheduler of a spare instance is gone (SchedulerGone), or a spare instance did not start and no scheduler ended it (NeverStarted).",
		"reason")
	eventsTotal = Metrics.Counter(metric.Experimental, "windlass_controller_events_total",
		"Events about Functions, by reason.", "reason")
)

// metrics are what the controller counts.
type metrics struct {
	schedulers   prometheus.Gauge
	statusWrites prometheus.Counter
	podsDeleted  *prometheus.CounterVec
	events       *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		schedulers:   schedulersNow.New(),
		statusWrites: statusWritesTotal.New(),
		podsDeleted:  podsDeletedTotal.Vec(),
		events:       eventsTotal.Vec(),
	}
	for _, c := range []prometheus.Collector{m.schedulers, m.statusWrites, m.podsDeleted, m.events} {
		if err := registerer.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
