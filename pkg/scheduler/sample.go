package scheduler

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// newLabel is one label of samples.
func newLabel(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: &value}
}

// newSample is the value that a collector has read for one series, as one allocation.
// prometheus.MustNewConstMetric makes many, most of them for labels, which series of one
// subject can share: labels are in the order of their names, and are not changed any
// more. All series are counters or gauges.
func newSample(s series, value float64, labels []*dto.LabelPair) prometheus.Metric {
	common := sample{desc: s.desc, labels: labels, value: value}
	switch s.kind {
	case prometheus.CounterValue:
		return &counterSample{sample: common}
	case prometheus.GaugeValue:
		return &gaugeSample{sample: common}
	default:
		panic("scheduler: a sample is a counter or a gauge")
	}
}

type sample struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	value  float64
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// The message that is written is part of the sample.
type (
	counterSample struct {
		sample
		counter dto.Counter
	}
	gaugeSample struct {
		sample
		gauge dto.Gauge
	}
)

// Write implements prometheus.Metric.
func (s *counterSample) Write(out *dto.Metric) error {
	s.counter.Value = &s.value
	out.Label, out.Counter = s.labels, &s.counter
	return nil
}

// Write implements prometheus.Metric.
func (s *gaugeSample) Write(out *dto.Metric) error {
	s.gauge.Value = &s.value
	out.Label, out.Gauge = s.labels, &s.gauge
	return nil
}
