package monitor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	dto "github.com/prometheus/client_model/go"

	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Reading has the data of one process.
type Reading struct {
	// Source names the process, and no other one.
	Source string
	// Failed says why it did not answer; empty if it did. Otherwise there is nothing else.
	Failed string
	// Node is the node that it orders the calls of; empty if it orders none.
	Node string
	// Families are its metrics. Those of a gateway and a scheduler may be mixed.
	Families []*dto.MetricFamily
	// Latest are its decisions of the last minute, and the functions that it cannot
	// start, if it decides.
	Latest decisionlog.LatestReport
}

// Sample has the data of all processes at about the same time.
type Sample struct {
	At time.Time
	// Troubles are messages about processes that did not answer, and about what is left out.
	Troubles []string

	sources map[string]*source
	// failed are the sources that did not answer.
	failed []string
}

// Read makes a Sample of the readings of all processes. notes say what is left out.
func Read(at time.Time, readings []Reading, notes ...string) Sample {
	s := Sample{At: at, sources: make(map[string]*source, len(readings))}
	for _, r := range readings {
		if r.Failed != "" {
			s.failed = append(s.failed, r.Source)
			s.Troubles = append(s.Troubles, Printable(r.Failed))
			continue
		}
		src := parse(r.Families, r.Node)
		src.at = at
		for _, b := range r.Latest.Broken {
			src.figuresOf(b.Namespace, b.Name).unit(Printable(b.Revision)).broken = Printable(b.Reason)
		}
		s.sources[r.Source] = src
		src.latest = r.Latest.Functions
		if more := r.Latest.More; more > 0 {
			s.Troubles = append(s.Troubles, Printable(fmt.Sprintf("the last decisions on %d more functions are left out", more)))
		}
	}
	for _, note := range notes {
		s.Troubles = append(s.Troubles, Printable(note))
	}
	return s
}

// source is one process.
type source struct {
	at        time.Time // when it answered
	functions map[invocation.FunctionKey]*figures
	nodes     map[string]*nodeFigures
	// latest are the decisions of the last minute.
	latest []decisionlog.Report
}

// figures are the data of one process about a function.
type figures struct {
	// inFlight is how many calls wait or run at the moment.
	inFlight int
	// units are its revisions, in the order in which they were reported; mostly one.
	units []unit
	// answers are by revision. A gateway forgets those of a revision that is gone.
	answers map[string]answers
	counted
	durations histogram
}

// unit is the present state of one revision.
type unit struct {
	revision string
	state
}

// unit is that of a revision.
func (f *figures) unit(revision string) *unit {
	at := slices.IndexFunc(f.units, func(u unit) bool { return u.revision == revision })
	if at < 0 {
		at = len(f.units)
		f.units = append(f.units, unit{revision: revision})
	}
	return &f.units[at]
}

// state is the present state.
type state struct {
	queued                   int
	oldest                   float64
	instances                Instances
	meanExecution, meanStart float64
	// broken is why it cannot run; empty if it can.
	broken               string
	required             int
	arrivalRate, horizon float64
}

// counted has counters, which only rise while a process runs.
type counted struct {
	cold                            float64
	launched, started, failedStarts float64
	phases, coldPhases              sums
}

// answers are the calls of one revision.
type answers struct{ calls, failed float64 }

// add adds to those of a revision.
func (f *figures) add(revision string, more answers) {
	if f.answers == nil {
		f.answers = make(map[string]answers)
	}
	sum := f.answers[revision]
	f.answers[revision] = answers{sum.calls + more.calls, sum.failed + more.failed}
}

// sums are summed phases, by their positions in one of the lists below.
type sums [7]float64

// corePhase is the wait for a core of a busy node.
const corePhase = "core"

// phases of a call and of a cold start, in their order.
var (
	phases     = []string{"admit", "queue", corePhase, "claim", "execute", "return"}
	coldPhases = []string{"decide", "create", "sandbox", "containers", "ready", "hello", "claim"}
)

// metric is one series of a family.
type metric struct {
	*dto.Metric
	labels map[string]string
	value  float64
}

// readers are by the names of the families that say something of functions.
var readers = map[string]func(*figures, metric){
	"windlass_gateway_invocations_total": func(f *figures, m metric) {
		more := answers{calls: m.value}
		if strings.HasPrefix(m.labels["code"], "5") {
			more.failed = m.value
		}
		f.add(m.labels["revision"], more)
	},
	"windlass_gateway_answers_broken_total":        func(f *figures, m metric) { f.add("", answers{failed: m.value}) },
	"windlass_gateway_invocation_duration_seconds": func(f *figures, m metric) { f.durations = readHistogram(m.GetHistogram()) },
	"windlass_gateway_invocations_in_flight":       func(f *figures, m metric) { f.inFlight += int(m.value) },
	"windlass_gateway_cold_invocations_total":      func(f *figures, m metric) { f.cold += m.value },
	"windlass_gateway_phase_seconds_total":         func(f *figures, m metric) { addPhase(&f.phases, phases, m) },

	"windlass_scheduler_queue_length":                  ofUnit(func(u *unit, m metric) { u.queued = int(m.value) }),
	"windlass_scheduler_queue_oldest_wait_seconds":     ofUnit(func(u *unit, m metric) { u.oldest = m.value }),
	"windlass_scheduler_instances":                     ofUnit(func(u *unit, m metric) { u.instances.set(m.labels["state"], int(m.value)) }),
	"windlass_scheduler_estimated_execution_seconds":   ofUnit(func(u *unit, m metric) { u.meanExecution = m.value }),
	"windlass_scheduler_estimated_start_seconds":       ofUnit(func(u *unit, m metric) { u.meanStart = m.value }),
	"windlass_scheduler_desired_instances":             ofUnit(func(u *unit, m metric) { u.required = int(m.value) }),
	"windlass_scheduler_estimated_arrivals_per_second": ofUnit(func(u *unit, m metric) { u.arrivalRate = m.value }),
	"windlass_scheduler_horizon_seconds":               ofUnit(func(u *unit, m metric) { u.horizon = m.value }),

	"windlass_scheduler_instances_launched_total":       func(f *figures, m metric) { f.launched += m.value },
	"windlass_scheduler_instances_started_total":        func(f *figures, m metric) { f.started += m.value },
	"windlass_scheduler_instances_failed_total":         func(f *figures, m metric) { f.failedStarts += m.value },
	"windlass_scheduler_cold_start_phase_seconds_total": func(f *figures, m metric) { addPhase(&f.coldPhases, coldPhases, m) },
}

// ofUnit reads what a scheduler says of one revision.
func ofUnit(read func(*unit, metric)) func(*figures, metric) {
	return func(f *figures, m metric) { read(f.unit(Printable(m.labels["revision"])), m) }
}

func addPhase(s *sums, names []string, m metric) {
	for i, name := range names {
		if m.labels["phase"] == name {
			s[i] += m.value
		}
	}
}

// parse reads the metrics of a process that orders the calls of a node, or of none if that is empty.
func parse(families []*dto.MetricFamily, own string) *source {
	s := &source{functions: make(map[invocation.FunctionKey]*figures), nodes: make(map[string]*nodeFigures)}
	for _, family := range families {
		read := readers[family.GetName()]
		node := nodeReaders[family.GetName()]
		if read == nil && node == nil {
			continue
		}
		for _, series := range family.GetMetric() {
			m := metric{Metric: series, labels: make(map[string]string, len(series.GetLabel())), value: valueOf(series)}
			for _, label := range series.GetLabel() {
				m.labels[label.GetName()] = label.GetValue()
			}
			if node != nil {
				// Node agents do not name their node.
				if name := cmp.Or(m.labels["node_name"], own); name != "" {
					node(s.node(name), m)
				}
				continue
			}
			read(s.figuresOf(m.labels["function_namespace"], m.labels["function"]), m)
		}
	}
	return s
}

func (s *source) figuresOf(namespace, name string) *figures {
	key := invocation.FunctionKey{Namespace: Printable(namespace), Name: Printable(name)}
	f := s.functions[key]
	if f == nil {
		f = &figures{}
		s.functions[key] = f
	}
	return f
}

func valueOf(m *dto.Metric) float64 {
	switch {
	case m.Counter != nil:
		return m.Counter.GetValue()
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	}
	return m.GetUntyped().GetValue()
}

// Printable is text without what a terminal might obey: control characters, and the
// invisible ones that change how others are read. Each becomes a space, or a question
// mark if it is no white space.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, text)
}
