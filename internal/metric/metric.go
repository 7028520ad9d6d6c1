package metric

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Kind is a type of metric.
type Kind string

// The kinds that there are, as Prometheus calls them.
const (
	KindCounter   Kind = "counter"
	KindGauge     Kind = "gauge"
	KindHistogram Kind = "histogram"
)

// Stability is how long a metric stays as it is.
type Stability uint8

// The stabilities. A stable metric keeps name, type, unit and labels; if it has to go, it is
// told for a year beside what replaces it. An experimental one may change with any release,
// whose notes say so. Values of labels may be added to either.
const (
	Stable Stability = iota + 1
	Experimental
)

// String is the word of docs/metrics.md for it.
func (s Stability) String() string {
	switch s {
	case Stable:
		return "stable"
	case Experimental:
		return "experimental"
	}
	return "of no stability"
}

// How exact a native histogram is, and how much it may hold: neighbouring bounds are
// a tenth apart, and a histogram that has too many is begun again or made coarser.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 100
	nativeMinReset   = time.Hour
)

// Declaration says what a metric is.
type Declaration struct {
	Name      string
	Kind      Kind
	Stability Stability
	// Help explains the metric in full sentences.
	Help   string
	Labels []string
	// Buckets are the classic upper bounds of a histogram; none if it has native ones only.
	Buckets []float64
}

// Native says that it is a histogram without classic buckets.
func (d Declaration) Native() bool { return d.Kind == KindHistogram && len(d.Buckets) == 0 }

// units are the ends of names that say what is measured.
var units = []string{"seconds", "bytes", "ratio"}

// Unit is what its values are measured in: seconds, bytes or ratio; empty for a mere
// number.
func (d Declaration) Unit() string {
	name := strings.TrimSuffix(d.Name, "_total")
	for _, unit := range units {
		if strings.HasSuffix(name, "_"+unit) {
			return unit
		}
	}
	return ""
}

var (
	properName  = regexp.MustCompile(`^windlass(_[a-z0-9]+)+$`)
	properLabel = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
)

// ofTargets are labels that scrapes commonly give to targets. A metric's own label of such a
// name would be renamed by Prometheus, or would replace the target's.
var ofTargets = []string{
	"job", "instance", "namespace", "pod", "container", "node", "service", "endpoint", "component",
	"cluster", "region", "environment", "stage", "owner", "team",
}

// validate says what is wrong with a declaration.
func (d Declaration) validate() error {
	ends := strings.HasSuffix(d.Name, "_total")
	switch {
	case d.Stability != Stable && d.Stability != Experimental:
		return fmt.Errorf("metric: %s is %v: it must be stable or experimental", d.Name, d.Stability)
	case !properName.MatchString(d.Name):
		return fmt.Errorf("metric: the name %q must begin with windlass_ and consist of lower-case words", d.Name)
	case d.Kind == KindCounter && !ends:
		return fmt.Errorf("metric: the counter %s must end in _total", d.Name)
	case d.Kind != KindCounter && ends:
		return fmt.Errorf("metric: %s is a %s and must not end in _total", d.Name, d.Kind)
	case !strings.HasSuffix(d.Help, "."):
		return fmt.Errorf("metric: the help of %s must be a sentence, with its full stop", d.Name)
	case !slices.IsSorted(d.Buckets):
		return fmt.Errorf("metric: the buckets of %s must rise", d.Name)
	}
	for i, label := range d.Labels {
		switch {
		case !properLabel.MatchString(label) || slices.Contains(d.Labels[:i], label):
			return fmt.Errorf("metric: the label %q of %s must be lower-case words, and there once", label, d.Name)
		case slices.Contains(ofTargets, label):
			return fmt.Errorf("metric: the label %q of %s is one that scrapes give to targets: say whose it is", label, d.Name)
		}
	}
	return nil
}

// Set has the declarations of one package. Its zero value is empty.
type Set struct{ declared []Declaration }

// All returns the declarations in the order in which they were made.
func (s *Set) All() []Declaration { return slices.Clone(s.declared) }

func (s *Set) declare(d Declaration) Declaration {
	if err := d.validate(); err != nil {
		panic(err)
	}
	if slices.ContainsFunc(s.declared, func(other Declaration) bool { return other.Name == d.Name }) {
		panic(fmt.Errorf("metric: %s is declared twice", d.Name))
	}
	s.declared = append(s.declared, d)
	return d
}

// Counter declares a number that only rises.
func (s *Set) Counter(stability Stability, name, help string, labels ...string) Counter {
	return Counter{s.declare(Declaration{Name: name, Kind: KindCounter, Stability: stability, Help: help, Labels: labels})}
}

// Gauge declares a number that rises and falls.
func (s *Set) Gauge(stability Stability, name, help string, labels ...string) Gauge {
	return Gauge{s.declare(Declaration{Name: name, Kind: KindGauge, Stability: stability, Help: help, Labels: labels})}
}

// Histogram declares a distribution. Buckets are its classic upper bounds; the native
// ones need no words.
func (s *Set) Histogram(stability Stability, name, help string, buckets []float64, labels ...string) Histogram {
	d := Declaration{Name: name, Kind: KindHistogram, Stability: stability, Help: help, Buckets: buckets, Labels: labels}
	if d.Native() {
		panic(fmt.Errorf("metric: %s has no buckets: declare it as Native", name))
	}
	return Histogram{s.declare(d)}
}

// Native declares a histogram with native buckets only: one for each function would otherwise
// need a series for each bucket. An exposition.Collector exports it.
func (s *Set) Native(stability Stability, name, help string, labels ...string) Declaration {
	return s.declare(Declaration{Name: name, Kind: KindHistogram, Stability: stability, Help: help, Labels: labels})
}

// Counter is the declaration of a counter.
type Counter struct{ Declaration }

func (c Counter) opts() prometheus.CounterOpts {
	return prometheus.CounterOpts{Name: c.Name, Help: c.Help}
}

// New makes the counter, which must have no labels.
func (c Counter) New() prometheus.Counter {
	c.bare()
	return prometheus.NewCounter(c.opts())
}

// Vec makes its counters by labels.
func (c Counter) Vec() *prometheus.CounterVec { return prometheus.NewCounterVec(c.opts(), c.Labels) }

// Func makes a counter that is read when it is scraped. It must have no labels.
func (c Counter) Func(read func() float64) prometheus.CounterFunc {
	c.bare()
	return prometheus.NewCounterFunc(c.opts(), read)
}

// Gauge is the declaration of a gauge.
type Gauge struct{ Declaration }

func (g Gauge) opts() prometheus.GaugeOpts { return prometheus.GaugeOpts{Name: g.Name, Help: g.Help} }

// New makes the gauge, which must have no labels.
func (g Gauge) New() prometheus.Gauge {
	g.bare()
	return prometheus.NewGauge(g.opts())
}

// Vec makes its gauges by labels.
func (g Gauge) Vec() *prometheus.GaugeVec { return prometheus.NewGaugeVec(g.opts(), g.Labels) }

// Func makes a gauge that is read when it is scraped. It must have no labels.
func (g Gauge) Func(read func() float64) prometheus.GaugeFunc {
	g.bare()
	return prometheus.NewGaugeFunc(g.opts(), read)
}

// Histogram is the declaration of a histogram.
type Histogram struct{ Declaration }

func (h Histogram) opts() prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: h.Name, Help: h.Help, Buckets: h.Buckets,
		NativeHistogramBucketFactor:     nativeFactor,
		NativeHistogramMaxBucketNumber:  nativeMaxBuckets,
		NativeHistogramMinResetDuration: nativeMinReset,
	}
}

// New makes the histogram, which must have no labels.
func (h Histogram) New() prometheus.Histogram {
	h.bare()
	return prometheus.NewHistogram(h.opts())
}

// Vec makes its histograms by labels.
func (h Histogram) Vec() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(h.opts(), h.Labels)
}

// Desc describes the metric for a collector that reads it when it is scraped, with
// prometheus.MustNewConstMetric or a Metric of its own.
func (d Declaration) Desc() *prometheus.Desc {
	return prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
}

// bare sees to it that a metric without labels is not made of a declaration with some.
func (d Declaration) bare() {
	if len(d.Labels) > 0 {
		panic(fmt.Errorf("metric: %s has the labels %v: use Vec", d.Name, d.Labels))
	}
}
