package exposition

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/windlass-dev/windlass/internal/metric"
)

// maxLabels is how many labels a series of a Collector can have.
const maxLabels = 4

// Labels are the values of a series' labels, in the order of its declaration. They are an
// array so that a sample is a value without allocations.
type Labels [maxLabels]string

// Sample is the value of one series.
type Sample struct {
	Labels Labels
	Value  float64
	// Histogram is the value of a histogram series. It must not change afterwards.
	Histogram *Histogram
	// Since is when a counter or histogram began at zero; zero if that is not known.
	Since time.Time
}

// Tell receives a sample.
type Tell = func(Sample)

// Series are the counters, gauges or native histograms of one name. Of passes the samples of a
// row to Tell, in the order of their labels.
type Series[R any] struct {
	metric.Declaration
	Of func(row *R, tell Tell)
}

// Collector exports the series of rows.
type Collector[R any] struct {
	series []Series[R]
	read   func() []R
}

// NewCollector makes a collector of all series of the rows. read returns the rows in the order
// of their labels, and nobody changes them afterwards.
func NewCollector[R any](series []Series[R], read func() []R) *Collector[R] {
	for _, s := range series {
		if s.Kind == metric.KindHistogram && !s.Native() || len(s.Labels) > maxLabels {
			panic("exposition: " + s.Name + " has classic buckets or too many labels: use a prometheus.Collector")
		}
	}
	return &Collector[R]{series, read}
}

// family is all samples of one name. They can be walked often, and are always the same.
type family struct {
	metric.Declaration
	samples iter.Seq[Sample]
}

// families reads the rows.
func (c *Collector[R]) families() []family {
	rows := c.read()
	list := make([]family, len(c.series))
	for i, s := range c.series {
		list[i] = family{s.Declaration, s.samples(rows)}
	}
	return list
}

func (s Series[R]) samples(rows []R) iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		more := true
		tell := func(sample Sample) { more = more && yield(sample) }
		for i := range rows {
			if s.Of(&rows[i], tell); !more {
				return
			}
		}
	}
}

// Describe implements prometheus.Collector.
func (c *Collector[R]) Describe(ch chan<- *prometheus.Desc) {
	for _, s := range c.series {
		ch <- s.Desc()
	}
}

// Collect implements prometheus.Collector, for Gather: it costs many times as much as Write.
func (c *Collector[R]) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c.families() {
		desc := f.Desc()
		for s := range f.samples {
			labels := s.Labels[:len(f.Labels)]
			switch {
			case f.Kind == metric.KindHistogram:
				ch <- gathered{prometheus.MustNewConstMetric(desc, prometheus.UntypedValue, 0, labels...), s}
			case f.Kind == metric.KindGauge:
				ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.Value, labels...)
			case s.Since.IsZero():
				ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.Value, labels...)
			default:
				ch <- prometheus.MustNewConstMetricWithCreatedTimestamp(desc, prometheus.CounterValue, s.Value, s.Since, labels...)
			}
		}
	}
}

// gathered is a histogram for those who gather; the metric that it is made of has its labels.
type gathered struct {
	prometheus.Metric
	sample Sample
}

// Write implements prometheus.Metric.
func (g gathered) Write(out *dto.Metric) error {
	if err := g.Metric.Write(out); err != nil {
		return err
	}
	var m nativeMessage
	m.set(g.sample.Histogram)
	if !g.sample.Since.IsZero() {
		m.CreatedTimestamp = timestamppb.New(g.sample.Since)
	}
	out.Untyped, out.Histogram = nil, &m.Histogram
	return nil
}
