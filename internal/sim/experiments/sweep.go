package experiments

import (
	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

// sweep has the results of each contender at each of some values, over all seeds.
type sweep struct {
	contenders []contender
	values     []int
	results    [][]cluster.Result
}

// sweepOver runs each contender at each value with the config for it.
func sweepOver(o Options, all []contender, values []int, config func(value int, seed uint64) cluster.Config) sweep {
	return sweep{all, values, grid(o, len(all)*len(values), func(cell int, seed uint64) cluster.Result {
		return all[cell/len(values)].run(config(values[cell%len(values)], seed))
	})}
}

// result are the results of a contender at a value, one for each seed.
func (s sweep) result(contender, value int) []cluster.Result {
	return s.results[contender*len(s.values)+value]
}

// figure is a column of a table about results.
type figure struct {
	name string
	// spread adds a column with the standard deviation.
	spread bool
	of     func(cluster.Result) float64
}

// table has a row for each contender and value.
func (s sweep) table(name, caption, value string, figures []figure) report.Table {
	t := report.Table{Name: name, Caption: caption, Columns: []string{"scheduler", value}}
	for _, f := range figures {
		t.Columns = append(t.Columns, f.name)
		if f.spread {
			t.Columns = append(t.Columns, "sd")
		}
	}
	for i, contender := range s.contenders {
		for j, v := range s.values {
			row := []report.Cell{contender.name, report.Num(v)}
			for _, f := range figures {
				of := statsOf(s.result(i, j), f.of)
				row = append(row, report.Num(of.mean))
				if f.spread {
					row = append(row, report.Num(of.deviation))
				}
			}
			t.Add(row...)
		}
	}
	return t
}

// series are the lines of a chart, one for each contender.
func (s sweep) series(of func(cluster.Result) float64) []report.Series {
	var all []report.Series
	for i, contender := range s.contenders {
		line := report.Series{Name: contender.name}
		for j, v := range s.values {
			st := statsOf(s.result(i, j), of)
			line.Points = append(line.Points, report.Point{X: float64(v), Y: st.mean, Err: st.deviation})
		}
		all = append(all, line)
	}
	return all
}

// ratio is a figure at the last value beside that at the first.
func (s sweep) ratio(contender int, of func(cluster.Result) float64) float64 {
	return statsOf(s.result(contender, len(s.values)-1), of).mean / statsOf(s.result(contender, 0), of).mean
}

func createdOf(r cluster.Result) float64 { return float64(r.Total.Created) }
func coldOf(r cluster.Result) float64    { return float64(r.Total.Cold) }
func evictedOf(r cluster.Result) float64 { return float64(r.Total.Evicted) }
func refusedOf(r cluster.Result) float64 { return float64(r.Total.Refused + r.Total.Expired) }
func setupOf(r cluster.Result) float64   { return milliseconds(r.Total.Setup.Mean()) }
func p99WaitOf(r cluster.Result) float64 { return milliseconds(r.Total.Wait.Quantile(.99)) }
