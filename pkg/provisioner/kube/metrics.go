package kube

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Values of the label result.
const (
	resultCreated = "created"
	resultExists  = "exists"
	resultRefused = "refused"
	resultRetried = "retried"
	resultTaken   = "taken"
)

type metrics struct {
	creations *prometheus.CounterVec
	seconds   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, queued func() float64) (*metrics, error) {
	m := &metrics{
		creations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "windlass_pod_creations_total",
			Help: "Requests to create a pod, by result: created, exists (an earlier request was answered late), refused, retried, or taken (a spare instance became a function's).",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "windlass_pod_create_seconds",
			Help:    "How long the Kubernetes API took to answer a request to create a pod.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13),
		}),
	}
	for _, result := range []string{resultCreated, resultExists, resultRefused, resultRetried, resultTaken} {
		m.creations.WithLabelValues(result)
	}
	length := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "windlass_pods_queue_length",
		Help: "Pods that wait to be created.",
	}, queued)
	for _, c := range []prometheus.Collector{m.creations, m.seconds, length} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("kube: registering metrics: %w", err)
		}
	}
	return m, nil
}
