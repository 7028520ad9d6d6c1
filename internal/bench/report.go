package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// Provenance says where figures are from.
type Provenance struct {
	// Command is the one that measured, and Windlass its version, which names its commit.
	Command  string    `json:"command"`
	Windlass string    `json:"windlass"`
	Go       string    `json:"go"`
	Date     time.Time `json:"date"`
	// Machine is the processor's model, and Processors how many the programs could use.
	Machine    string `json:"machine"`
	Processors int    `json:"processors"`
	Kernel     string `json:"kernel"`
	// Load is the machine's load average of the last minute when it began.
	Load   float64 `json:"load"`
	Rounds int     `json:"rounds"`
	Span   string  `json:"span"`
}

// Doubts are reasons not to store what is measured: a later check does not show them.
func (p Provenance) Doubts() []string {
	var doubts []string
	if p.Load > float64(p.Processors) {
		doubts = append(doubts, fmt.Sprintf("the load average is %.1f, and there are %d processors: other programs slow down what is measured", p.Load, p.Processors))
	}
	if strings.HasSuffix(p.Windlass, "-dirty") {
		doubts = append(doubts, fmt.Sprintf("Windlass is %s, with changes that no commit has: nobody can measure it again", p.Windlass))
	}
	return doubts
}

// Report is what a run found. As JSON it has the fields by which windlass-plot draws it.
type Report struct {
	Name       string         `json:"name"`
	Title      string         `json:"title"`
	Provenance Provenance     `json:"provenance"`
	Figures    []Figure       `json:"figures"`
	Results    []Result       `json:"results,omitempty"`
	Charts     []report.Chart `json:"charts,omitempty"`
}

// Stored is what a later check compares: the ratios of Windlass, without those of proxies and
// without times, which change with the machine.
func (r Report) Stored() Report {
	r.Results, r.Charts = nil, nil
	r.Figures = slices.DeleteFunc(slices.Clone(r.Figures), func(f Figure) bool {
		return !strings.HasPrefix(f.Name, words[Local]) && !strings.HasPrefix(f.Name, throughput)
	})
	return r
}

// Result is what one scenario found on one path.
type Result struct {
	Suite    string `json:"suite"`
	Scenario string `json:"scenario"`
	// About is the scenario in words.
	About string   `json:"about"`
	Load  Scenario `json:"load"`
	Path  Path     `json:"path"`
	// Calls of all rounds that count, and those of them that failed. Failure says why for the first.
	Calls   int    `json:"calls"`
	Failed  int    `json:"failed"`
	Failure string `json:"failure,omitempty"`
	// MostRunning is how many calls an instance ran at a time at most, where clients hang up.
	MostRunning int `json:"mostRunning,omitempty"`
	// CPU is in microseconds of a call, by part, and CPUOverProxy how many times that of one
	// proxy all parts but the function take.
	CPU            map[Part]Spread `json:"cpuMicros"`
	CPUOverProxy   *Spread         `json:"cpuOverProxy,omitempty"`
	ClientCPU      Spread          `json:"clientCpuMicros"` // of the process that makes the calls
	CallsPerSecond Spread          `json:"callsPerSecond"`
	// Latency is left out where clients hang up: calls that take long are not in it.
	Latency Latency `json:"latencyMicros,omitzero"`
	// Mallocs and Bytes are allocated by a call, in the programs that export metrics; they are
	// those of one round.
	Mallocs *float64 `json:"mallocs,omitempty"`
	Bytes   *float64 `json:"bytes,omitempty"`
	// Switches are the context switches of a call in all programs, the function's among them.
	Switches Spread `json:"switches"`
}

// Latency are quantiles in microseconds.
type Latency struct {
	P50  Spread `json:"p50"`
	P90  Spread `json:"p90"`
	P99  Spread `json:"p99"`
	P999 Spread `json:"p999"`
	Max  Spread `json:"max"`
	// SenderLateP99 is by how much an open loop's sender was late.
	SenderLateP99 *Spread `json:"senderLateP99,omitempty"`
}

// Summarize makes the report of all measurements of a plan.
func Summarize(from Provenance, all []Measurement) Report {
	r := Report{Name: "bench", Title: "What a call costs", Provenance: from, Figures: Figures(all)}
	for _, group := range byGroup(all) {
		for _, s := range group.scenarios() {
			for _, path := range s.Paths {
				if found := group.of(s, path); len(found) > 0 {
					r.Results = append(r.Results, resultOf(found, group.of(s, Proxy)))
				}
			}
		}
	}
	r.Charts = charts(r.Results)
	return r
}

// resultOf sums up the rounds of one scenario on one path, beside those of the proxy.
func resultOf(found, proxy []Measurement) Result {
	first := found[0]
	r := Result{
		Suite: first.Suite, Scenario: first.Scenario.Name(), About: first.Scenario.String(), Load: first.Scenario, Path: first.Path,
		CPU:            make(map[Part]Spread),
		ClientCPU:      spreadOf(each(found, Measurement.client)),
		CallsPerSecond: spreadOf(each(found, Measurement.rate)),
		Switches:       spreadOf(each(found, Measurement.switches)),
	}
	if !first.Scenario.HangUp {
		r.Latency = latencyOf(found)
	}
	for _, m := range found {
		r.Calls += m.Calls
		r.Failed += m.Failed
		r.Failure = cmp.Or(r.Failure, m.Failure)
		r.MostRunning = max(r.MostRunning, m.MostRunning)
	}
	for part := range first.Costs {
		r.CPU[part] = spreadOf(each(found, func(m Measurement) float64 { return m.cpuOf(part) }))
	}
	for _, m := range found {
		if mallocs, bytes, known := m.memory(); known {
			r.Mallocs, r.Bytes = &mallocs, &bytes
			break
		}
	}
	if ratio, ok := compare(found, proxy, Measurement.cpu); ok {
		r.CPUOverProxy = &ratio
	}
	return r
}

func latencyOf(found []Measurement) Latency {
	micros := func(of func(Measurement) time.Duration) Spread {
		return spreadOf(each(found, func(m Measurement) float64 { return float64(of(m)) / 1e3 }))
	}
	l := Latency{
		P50:  micros(func(m Measurement) time.Duration { return m.P50 }),
		P90:  micros(func(m Measurement) time.Duration { return m.P90 }),
		P99:  micros(func(m Measurement) time.Duration { return m.P99 }),
		P999: micros(func(m Measurement) time.Duration { return m.P999 }),
		Max:  micros(func(m Measurement) time.Duration { return m.Max }),
	}
	if found[0].Scenario.Rate > 0 {
		late := micros(func(m Measurement) time.Duration { return m.Late })
		l.SenderLateP99 = &late
	}
	return l
}

// WriteJSON writes the report as an indented object.
func (r Report) WriteJSON(w io.Writer) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// errNoFigures says that there is nothing to compare with.
var errNoFigures = errors.New("it has no figures to compare with")

// ReadJSON reads a report that WriteJSON wrote, with at least one figure.
func ReadJSON(from io.Reader) (Report, error) {
	var r Report
	if err := json.NewDecoder(from).Decode(&r); err != nil {
		return Report{}, fmt.Errorf("it is no report of windlass bench: %w", err)
	}
	if len(r.Figures) == 0 {
		return Report{}, errNoFigures
	}
	return r, nil
}

// String is the report as text: where it is from, a table for each scenario, and the figures, with what is said of their bars.
func (r Report) String() string {
	var b strings.Builder
	p := r.Provenance
	fmt.Fprintf(&b, "%s\nWindlass %s, %s, %s\n%s, %d processors, Linux %s, load average %.1f\n%d rounds of %s\n",
		p.Command, p.Windlass, p.Go, p.Date.UTC().Format(time.RFC3339), p.Machine, p.Processors, p.Kernel, p.Load, p.Rounds, p.Span)
	for i, result := range r.Results {
		if i == 0 || r.Results[i-1].Scenario != result.Scenario || r.Results[i-1].Suite != result.Suite {
			fmt.Fprintf(&b, "\n%s: %s\n%s\n", result.Scenario, result.About, head)
		}
		fmt.Fprintln(&b, result.row())
	}
	b.WriteByte('\n')
	for _, figure := range r.Figures {
		b.WriteString(figure.String())
		if verdict := figure.Verdict(); verdict != "" {
			fmt.Fprintf(&b, "  %s", verdict)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// row is at most 100 columns wide.
const row = "%-12s %6s  %-19s %8s %6s %7s %7s %7s %6s %6s %5s"

// head names the columns. Those of times are microseconds of a call: of the CPU without the
// function, of the function's CPU, of the clients' CPU, and of latency.
var head = fmt.Sprintf(row, "path", "cpu us", "over proxy", "function", "client", "calls/s", "p50 us", "p99 us", "allocs", "bytes", "csw")

func (r Result) row() string {
	between := 0.0
	for part, spread := range r.CPU {
		if part != PartFunction {
			between += spread.Median
		}
	}
	over, mallocs, bytes := "-", "-", "-"
	p50, p99 := number(r.Latency.P50.Median), number(r.Latency.P99.Median)
	if r.Load.HangUp {
		p50, p99 = "-", "-"
	}
	if r.CPUOverProxy != nil {
		over = r.CPUOverProxy.String()
	}
	if r.Mallocs != nil {
		mallocs, bytes = number(*r.Mallocs), number(*r.Bytes)
	}
	text := fmt.Sprintf(row, r.Path, number(between), over, number(r.CPU[PartFunction].Median), number(r.ClientCPU.Median),
		number(r.CallsPerSecond.Median), p50, p99, mallocs, bytes, number(r.Switches.Median))
	if r.Failed > 0 {
		text += fmt.Sprintf("  %d FAILED", r.Failed)
	}
	return text
}

// number is a number for people, with three digits or all before the point.
func number(f float64) string {
	switch {
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

// Failed is an error if calls failed, which makes the figures doubtful, or if an instance ran more
// calls at a time than its concurrency.
func (r Report) Failed() error {
	failed := 0
	var reasons []string
	for _, result := range r.Results {
		if failed += result.Failed; result.Failed > 0 {
			reasons = append(reasons, fmt.Sprintf("%d of %s on the path %s, the first: %s", result.Failed, result.Scenario, result.Path, result.Failure))
		}
		if most := result.MostRunning; most > result.Load.Concurrency {
			return fmt.Errorf("%s on the path %s: an instance ran %d calls at a time, and its concurrency is %d",
				result.Scenario, result.Path, most, result.Load.Concurrency)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d calls failed, which none should: the figures are doubtful\n%s", failed, strings.Join(reasons, "\n"))
	}
	return nil
}
