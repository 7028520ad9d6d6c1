package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	tableWidth = 100
	// numbersWidth is what the columns beside the name take.
	numbersWidth = 7 + 7 + 6 + 8 + 6 + 3*7 + 1 + 3*7
	// mostFailures is how many reasons for errors are printed.
	mostFailures = 5
)

// Table is the report for a terminal of 100 columns: a row per function, the
// total, and below it the most frequent reasons for errors. Times are in
// milliseconds; a dash stands for what is not known. Names that are too long
// lose their beginning.
func (r Report) Table() string {
	width := len("function")
	for _, row := range r.Functions {
		width = max(width, utf8.RuneCountInString(row.Function))
	}
	width = min(width, tableWidth-numbersWidth)
	var b strings.Builder
	fmt.Fprintf(&b, "%*s%14s%21s %21s\n", width+7+7+6, "", "instances", "setup time, ms", "total time, ms")
	fmt.Fprintf(&b, "%-*s%7s%7s%6s%8s%6s%7s%7s%7s %7s%7s%7s\n", width, "function",
		"calls", "errors", "cold", "created", "peak", "p50", "p95", "p99", "p50", "p95", "p99")
	for _, row := range r.Functions {
		writeRow(&b, width, row.Function, row)
	}
	writeRow(&b, width, "total", r.Total)
	for i, f := range r.Failures {
		if i == mostFailures {
			fmt.Fprintf(&b, "errors: and %d other reasons\n", len(r.Failures)-i)
			break
		}
		fmt.Fprintf(&b, "errors: %d x %s\n", f.Calls, f.Reason)
	}
	return b.String()
}

func writeRow(b *strings.Builder, width int, name string, row Row) {
	created, peak := "-", "-"
	if row.Instances != nil {
		created, peak = strconv.Itoa(row.Instances.Created), strconv.Itoa(row.Instances.Peak)
	}
	fmt.Fprintf(b, "%-*s%7d%7d%6d%8s%6s", width, shortened(name, width), row.Calls, row.Errors, row.ColdStarts, created, peak)
	for i, q := range []Quantiles{row.Setup, row.Total} {
		if i > 0 {
			b.WriteByte(' ')
		}
		for _, d := range []time.Duration{q.P50, q.P95, q.P99} {
			text := "-"
			if q.N > 0 {
				text = tableMs(d)
			}
			fmt.Fprintf(b, "%7s", text)
		}
	}
	b.WriteByte('\n')
}

// tableMs has as many decimals as a person can use.
func tableMs(d time.Duration) string {
	v := milliseconds(d)
	switch {
	case v < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case v < 1000:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// shortened keeps the end of a name, which tells functions of one namespace
// apart.
func shortened(name string, width int) string {
	runes := []rune(name)
	if len(runes) <= width {
		return name
	}
	return "…" + string(runes[len(runes)-width+1:])
}

// Values are the total as lines of the form name=value for programs to read.
// Lines about instances or quantiles are left out where nothing is known.
func (r Report) Values() []string {
	t := r.Total
	var lines []string
	integer := func(name string, n int) { lines = append(lines, name+"="+strconv.Itoa(n)) }
	number := func(name string, v float64, decimals int) {
		lines = append(lines, name+"="+strconv.FormatFloat(v, 'f', decimals, 64))
	}
	integer("calls", t.Calls)
	integer("errors", t.Errors)
	integer("lost", t.Lost)
	integer("not_sent", t.NotSent)
	integer("cut_off", t.CutOff)
	integer("cold_starts", t.ColdStarts)
	number("cold_start_ratio", t.ColdStartRatio(), 4)
	if t.Instances != nil {
		integer("instances_created", t.Instances.Created)
		integer("instances_peak", t.Instances.Peak)
	}
	for _, part := range []struct {
		name string
		q    Quantiles
	}{{"setup", t.Setup}, {"total", t.Total}} {
		if part.q.N > 0 {
			number(part.name+"_p50_ms", milliseconds(part.q.P50), 3)
			number(part.name+"_p95_ms", milliseconds(part.q.P95), 3)
			number(part.name+"_p99_ms", milliseconds(part.q.P99), 3)
		}
	}
	integer("unmeasured", t.Unmeasured)
	number("send_late_p99_ms", milliseconds(r.SendLateP99), 3)
	number("send_late_max_ms", milliseconds(r.SendLateMax), 3)
	return lines
}
