package bench

import (
	"math"
	"slices"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// charts are those of each suite.
func charts(results []Result) []report.Chart {
	var all []report.Chart
	var suites []string
	for _, r := range results {
		if !slices.Contains(suites, r.Suite) {
			suites = append(suites, r.Suite)
		}
	}
	for _, suite := range suites {
		of := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Suite != suite })
		if chart := cpuChart(suite, of); len(chart.Series) > 1 {
			all = append(all, chart)
		}
		if chart := latencyChart(suite, of); len(chart.Series) > 0 {
			all = append(all, chart)
		}
	}
	return all
}

// apart is the distance of two paths, where that of two scenarios is 1.
const apart = 0.12

// cpuChart has the ratios to the proxy by scenario, with half of their range as the error.
func cpuChart(suite string, results []Result) report.Chart {
	chart := report.Chart{
		Name: "bench-" + suite + "-cpu", Title: "CPU time of a call without its function", Kind: report.Dots,
		X: report.Axis{Label: "instances x concurrency _ connections"}, Y: report.Axis{Label: "times one proxy hop", FromZero: true},
	}
	proxy := report.Series{Name: "one proxy", Guide: true}
	for _, r := range results {
		if r.CPUOverProxy == nil {
			continue
		}
		if !slices.Contains(chart.X.Names, r.Scenario) {
			proxy.Points = append(proxy.Points, report.Point{X: float64(len(chart.X.Names)), Y: 1})
			chart.X.Names = append(chart.X.Names, r.Scenario)
		}
		if r.Path == Proxy {
			continue
		}
		at := slices.Index(chart.X.Names, r.Scenario)
		series := seriesOf(&chart, string(r.Path))
		series.Points = append(series.Points, report.Point{X: float64(at), Y: r.CPUOverProxy.Median, Err: halfRange(*r.CPUOverProxy)})
	}
	// Side by side, so that none hides another.
	for i := range chart.Series {
		for j := range chart.Series[i].Points {
			chart.Series[i].Points[j].X += apart * (float64(i) - float64(len(chart.Series)-1)/2)
		}
	}
	chart.Series = append(chart.Series, proxy)
	return chart
}

// latencyChart has the latencies of open loops by rate.
func latencyChart(suite string, results []Result) report.Chart {
	chart := report.Chart{
		Name: "bench-" + suite + "-latency", Title: "Latency in an open loop", Kind: report.Lines,
		X: report.Axis{Label: "calls a second", FromZero: true}, Y: report.Axis{Label: "microseconds", Log: true},
	}
	for _, r := range results {
		if r.Load.Rate == 0 {
			continue
		}
		for quantile, spread := range map[string]Spread{"p50": r.Latency.P50, "p99": r.Latency.P99} {
			series := seriesOf(&chart, string(r.Path)+" "+quantile)
			series.Family, series.Kin = string(r.Path), quantile
			series.Points = append(series.Points, report.Point{X: float64(r.Load.Rate), Y: spread.Median, Err: halfRange(spread)})
		}
	}
	slices.SortStableFunc(chart.Series, func(a, b report.Series) int {
		return slices.Compare([]string{a.Kin, a.Family}, []string{b.Kin, b.Family})
	})
	return chart
}

// seriesOf is the series of a name, which is added if it is missing.
func seriesOf(chart *report.Chart, name string) *report.Series {
	at := slices.IndexFunc(chart.Series, func(s report.Series) bool { return s.Name == name })
	if at < 0 {
		at = len(chart.Series)
		chart.Series = append(chart.Series, report.Series{Name: name})
	}
	return &chart.Series[at]
}

func halfRange(s Spread) float64 { return math.Abs(s.Max-s.Min) / 2 }
