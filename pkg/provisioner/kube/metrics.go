package kube

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/metric"
)

// Metrics are a scheduler's about pods.
var Metrics metric.Set

var (
	creationsDecl = Metrics.Counter(metric.Stable, "windlass_scheduler_pod_creates_total",
		"Requests to create a pod, by result: created, exists (an earlier request had succeeded), refused, retried, unavailable (the API server did not answer until the attempts ended), or taken (the function took a spare instance instead). In a cluster only.",
		"result")
	createSecondsDecl = Metrics.Histogram(metric.Stable, "windlass_scheduler_pod_create_duration_seconds",
		"Time that the Kubernetes API took to answer a request to create a pod. In a cluster only.",
		prometheus.ExponentialBuckets(0.001, 2, 13))
	queueLengthDecl = Metrics.Gauge(metric.Stable, "windlass_scheduler_pod_create_queue_length",
		"Pods that wait to be created. In a cluster only.")
)

// Values of the label result.
const (
	resultCreated     = "created"
	resultExists      = "exists"
	resultRefused     = "refused"
	resultRetried     = "retried"
	resultTaken       = "taken"
	resultUnavailable = "unavailable"
)

type metrics struct {
	creations *prometheus.CounterVec
	seconds   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, queued func() float64) (*metrics, error) {
	m := &metrics{creations: creationsDecl.Vec(), seconds: createSecondsDecl.New()}
	for _, result := range []string{resultCreated, resultExists, resultRefused, resultRetried, resultTaken, resultUnavailable} {
		m.creations.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{m.creations, m.seconds, queueLengthDecl.Func(queued)} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("kube: registering metrics: %w", err)
		}
	}
	return m, nil
}
