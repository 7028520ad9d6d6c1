package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// outcome is what became of a trace under a policy.
type outcome struct {
	results []result
	// cpu is what Windlass and its agents used, and switches how often the machine switched
	// between threads.
	cpu      time.Duration
	switches int64
	// core is the processor time of the functions' core, and took how long it all took.
	core, took time.Duration
	metrics    string
	platform   platform
}

// failed is how many calls were not answered well, and why the first of them was not.
func (o outcome) failed() (n int, first error) {
	for _, r := range o.results {
		if r.err != nil {
			n++
			if first == nil {
				first = r.err
			}
		}
	}
	return n, first
}

// slowdowns are turnarounds divided by processor times, of a class or of all.
func (o outcome) slowdowns(class string) (of []float64) {
	for _, r := range o.results {
		if r.err == nil && (class == "" || r.class == class) {
			of = append(of, r.turnaround.Seconds()/(r.cpu+r.sleep).Seconds())
		}
	}
	return of
}

// model is the mean slowdown that the model has, of a class or of all.
func (o outcome) model(class string) float64 {
	var of []float64
	for _, r := range o.results {
		if class == "" || r.class == class {
			of = append(of, r.predicted.Seconds()/(r.cpu+r.sleep).Seconds())
		}
	}
	return mean(of)
}

// turnarounds are in seconds.
func (o outcome) turnarounds(class string) (of []float64) {
	for _, r := range o.results {
		if r.err == nil && (class == "" || r.class == class) {
			of = append(of, r.turnaround.Seconds())
		}
	}
	return of
}

// lateness is how long after they were due the calls were made, in seconds.
func (o outcome) lateness() (of []float64) {
	for _, r := range o.results {
		of = append(of, r.late.Seconds())
	}
	return of
}

// stretch is the time that the functions took over the processor time that they used.
func (o outcome) stretch() float64 {
	var exec, used time.Duration
	for _, r := range o.results {
		if r.err == nil && r.sleep == 0 {
			exec += r.exec
			used += r.used
		}
	}
	return exec.Seconds() / used.Seconds()
}

// execution is what all calls together took in their functions, in seconds: what is billed.
func execution(o outcome) (sum float64) {
	for _, r := range o.results {
		sum += r.exec.Seconds()
	}
	return sum
}

// switchesPerCall is how often the machine switched between threads.
func (o outcome) switchesPerCall() float64 { return float64(o.switches) / float64(len(o.results)) }

// handovers are the times, in seconds, in which no function had a call though one was due: what it
// takes from the end of a call to the begin of the next one.
func handovers(results []result) (gaps []float64) {
	var ran []result
	for _, r := range results {
		if r.err == nil {
			ran = append(ran, r)
		}
	}
	slices.SortFunc(ran, func(a, b result) int { return cmp.Compare(a.began, b.began) })
	due := make([]time.Duration, len(ran)) // of the calls from this one on, the first
	for i := len(ran) - 1; i >= 0; i-- {
		due[i] = ran[i].due
		if i+1 < len(ran) {
			due[i] = min(due[i], due[i+1])
		}
	}
	var free time.Duration // when all calls before had ended
	for i, r := range ran {
		if gap := r.began - max(free, due[i]); gap > 0 {
			gaps = append(gaps, gap.Seconds())
		}
		free = max(free, r.began+r.exec)
	}
	return gaps
}

// printEach prints each call, times in milliseconds.
func (o outcome) printEach(to io.Writer, policy string) {
	ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 }
	for _, r := range o.results {
		fmt.Fprintf(to, "call policy=%s at=%.1f function=%s cpu=%.1f execution=%.1f turnaround=%.1f model=%.1f\n",
			policy, ms(r.at), r.function, ms(r.cpu), ms(r.exec), ms(r.turnaround), ms(r.predicted))
	}
}

// print prints the figures of one run.
func (o outcome) print(to io.Writer, prefix string, classes []string) {
	fmt.Fprintf(to, "%s_mean_slowdown=%.2f\n", prefix, mean(o.slowdowns("")))
	fmt.Fprintf(to, "%s_model_over_measured=%.2f model=%.2f\n", prefix, o.model("")/mean(o.slowdowns("")), o.model(""))
	p, late := o.platform, o.lateness()
	fmt.Fprintf(to, "%s_platform_ms before=%.2f after=%.2f early=%.2f slice=%.2f\n", prefix,
		p.before.Seconds()*1e3, p.after.Seconds()*1e3, p.early.Seconds()*1e3, p.slice.Seconds()*1e3)
	fmt.Fprintf(to, "%s_late_ms mean=%.2f p99=%.2f\n", prefix, mean(late)*1e3, percentile(late, 99)*1e3)
	fmt.Fprintf(to, "%s_mean_turnaround_ms=%.1f\n", prefix, mean(o.turnarounds(""))*1e3)
	for _, class := range classes {
		of := o.slowdowns(class)
		fmt.Fprintf(to, "%s_slowdown{class=%s}=%.2f p99=%.1f model=%.2f\n", prefix, class, mean(of), percentile(of, 99), o.model(class))
	}
	fmt.Fprintf(to, "%s_execution_over_cpu=%.2f\n", prefix, o.stretch())
	fmt.Fprintf(to, "%s_core_busy=%.3f took=%.2fs\n", prefix, o.core.Seconds()/o.took.Seconds(), o.took.Seconds())
	gaps := handovers(o.results)
	fmt.Fprintf(to, "%s_handover_ms p50=%.2f p99=%.2f n=%d share=%.3f\n", prefix, percentile(gaps, 50)*1e3, percentile(gaps, 99)*1e3,
		len(gaps), mean(gaps)*float64(len(gaps))/o.took.Seconds())
	fmt.Fprintf(to, "%s_switches_per_call=%.1f\n", prefix, o.switchesPerCall())
	fmt.Fprintf(to, "%s_platform_cpu_us_per_call=%.0f\n", prefix, o.cpu.Seconds()*1e6/float64(len(o.results)))
	if agents := sumOf(o.metrics, "windlass_node_agents", ""); agents > 0 {
		asks := sumOf(o.metrics, "windlass_node_asks_total", "")
		fmt.Fprintf(to, "%s_agents=%.0f\n", prefix, agents)
		fmt.Fprintf(to, "%s_asks_per_call=%.2f failed_open=%.0f demotions=%.0f band_writes=%.0f\n", prefix, asks/float64(len(o.results)),
			sumOf(o.metrics, "windlass_agent_failed_open_total", ""), sumOf(o.metrics, "windlass_node_demotions_total", ""),
			sumOf(o.metrics, "windlass_node_band_writes_total", ""))
	}
}

// bar is a ratio of two policies that is to be reached.
type bar struct {
	name  string
	over  string // the policy above the line
	under string // the one below
	of    func(outcome) float64
	least float64 // 0 for none
	most  float64 // 0 for none
	// floor is the lowest that any order could have for these calls on one core if nothing else took time; nil if unknown.
	floor func(outcome) float64
}

// barsOf are those of a trace.
func barsOf(trace string) []bar {
	slowdown := func(o outcome) float64 { return mean(o.slowdowns("")) }
	switch trace {
	case "azure":
		return []bar{
			{name: "mean_slowdown", over: "off", under: "serpt", of: slowdown, least: 2},
			{name: "mean_slowdown", over: "sfs", under: "serpt", of: slowdown, least: 1.3},
			{name: "long_calls", over: "serpt", under: "off", of: func(o outcome) float64 { return mean(o.slowdowns("140-234ms")) }, most: 1},
			{name: "shortest_p99", over: "sfs", under: "serpt", of: func(o outcome) float64 { return percentile(o.slowdowns("1-4ms"), 99) }, least: 2},
			{name: "mean_slowdown", over: "fifo-sfs", under: "sfs", of: slowdown, most: 1.2},
		}
	case "two":
		return []bar{
			{name: "mean_slowdown", over: "off", under: "serpt", of: slowdown, least: 2},
			{name: "mean_slowdown", over: "fifo-sfs", under: "sfs", of: slowdown, most: 1.1},
		}
	case "hybrid":
		return []bar{
			{name: "cost", over: "sept", under: "off", of: execution, most: .05},
			{name: "mean_turnaround", over: "sept", under: "off", of: func(o outcome) float64 { return mean(o.turnarounds("")) }, most: .5},
			{name: "p99_turnaround", over: "sept", under: "off", of: func(o outcome) float64 { return percentile(o.turnarounds(""), 99) }, most: .85},
		}
	case "zuk":
		return []bar{
			{name: "mean_response", over: "off", under: "fair-choice", of: func(o outcome) float64 { return mean(o.turnarounds("")) }, least: 2.5, floor: leastResponse},
			{name: "mean_stretch", over: "off", under: "fair-choice", of: slowdown, least: 10, floor: func(outcome) float64 { return 1 }},
		}
	}
	return nil
}

// judge prints the medians of ratios over seeds, by policy and seed, with their bars.
func judge(to io.Writer, trace string, all map[string][]outcome) {
	for _, b := range barsOf(trace) {
		if len(all[b.over]) == 0 || len(all[b.over]) != len(all[b.under]) {
			continue
		}
		var ratios []float64
		for i := range all[b.over] {
			ratios = append(ratios, b.of(all[b.over][i])/b.of(all[b.under][i]))
		}
		slices.Sort(ratios)
		median := percentile(ratios, 50)
		verdict, bound := "met", fmt.Sprintf(">=%g", b.least)
		if b.most > 0 {
			bound = fmt.Sprintf("<=%g", b.most)
		}
		if b.least > 0 && median < b.least || b.most > 0 && median > b.most {
			verdict = "MISSED"
		}
		fmt.Fprintf(to, "%s_%s_%s_over_%s=%.2f (%d seeds from %.2f to %.2f) goal%s %s\n",
			trace, b.name, b.over, b.under, median, len(ratios), ratios[0], ratios[len(ratios)-1], bound, verdict)
		if b.floor != nil {
			judgeReach(to, trace, b, all[b.over])
		}
	}
}

// judgeReach prints the most that any order could have in the place of a ratio, whatever it knew of the calls.
func judgeReach(to io.Writer, trace string, b bar, over []outcome) {
	var most []float64
	for _, o := range over {
		most = append(most, b.of(o)/b.floor(o))
	}
	median, verdict := percentile(most, 50), "within reach"
	if median < b.least {
		verdict = "out of the reach of every order"
	}
	fmt.Fprintf(to, "%s_%s_%s_over_any_order=%.2f (%d seeds up to %.2f) goal>=%g %s\n", trace, b.name, b.over, median, len(most), slices.Max(most), b.least, verdict)
}

// judgeModel prints the medians, over seeds, of what the model has beside what was measured.
func judgeModel(to io.Writer, trace string, policies []policy, all map[string][]outcome) {
	for _, p := range policies {
		var ratios []float64
		for _, o := range all[p.name] {
			ratios = append(ratios, o.model("")/mean(o.slowdowns("")))
		}
		median, verdict := percentile(ratios, 50), "met"
		if median < 0.9 || median > 1.1 {
			verdict = "MISSED"
		}
		fmt.Fprintf(to, "%s_model_over_measured_%s=%.2f goal>=0.9,<=1.1 %s\n", trace, p.name, median, verdict)
	}
}

// mostSwitches is how many times as often as without an order the machine may switch between threads under a policy. More
// would be a burden that the harness puts on that policy.
const mostSwitches = 2

// judgeSwitches prints the medians of these ratios over seeds.
func judgeSwitches(to io.Writer, trace string, policies []policy, all map[string][]outcome) {
	off := all["off"]
	for _, p := range policies {
		if p.name == "off" || len(off) == 0 || len(off) != len(all[p.name]) {
			continue
		}
		var ratios []float64
		for i, o := range all[p.name] {
			ratios = append(ratios, o.switchesPerCall()/off[i].switchesPerCall())
		}
		judgeMost(to, fmt.Sprintf("%s_switches_%s_over_off", trace, p.name), percentile(ratios, 50), mostSwitches)
	}
}

func mean(of []float64) float64 {
	sum := 0.0
	for _, x := range of {
		sum += x
	}
	return sum / float64(len(of))
}

// percentile is the nearest-rank percentile; NaN of nothing.
func percentile(of []float64, p float64) float64 {
	if len(of) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(p/100*float64(len(sorted))))-1)]
}
