package experiments

import (
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

// heldCell is a guess at what the paper does not say: how long a call holds its
// instance after its work, and how many containers a worker starts at a time, 0 for
// any number.
type heldCell struct {
	hold   time.Duration
	starts int
}

func heldCells(sparse bool) []heldCell {
	holds, starts := []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond, 40 * time.Millisecond}, []int{0, 4, 2}
	if sparse {
		holds, starts = []time.Duration{0, 20 * time.Millisecond}, []int{4}
	}
	var cells []heldCell
	for _, n := range starts {
		for _, hold := range holds {
			cells = append(cells, heldCell{hold, n})
		}
	}
	return cells
}

// heldTable shows how much of what fig3 finds follows from the two guesses.
func heldTable(o Options) report.Table {
	// Ratios settle with fewer calls than the figure has.
	calls := o.scaled(fig3Calls / 2)
	cells, all, counts := heldCells(o.Sparse), contenders(o), []int{1, 64}
	t := report.Table{Name: "held", Caption: "64 functions beside 1, by what is assumed of what the paper does not say", Columns: []string{
		"starts at a time", "held after work ms", "scheduler", "throughput 64:1", "cold starts 64:1", "set-up 64:1", "cold starts at 64", "sd",
	}}
	results := grid(o, len(cells)*len(all)*len(counts), func(i int, seed uint64) cluster.Result {
		cell, contender, functions := cells[i/len(counts)/len(all)], all[i/len(counts)%len(all)], counts[i%len(counts)]
		config := paperConfig(seed, functions, cluster.Clients{Count: fig3Clients, Calls: calls})
		config.Overheads.Pull, config.Nodes[0].Starts = cell.hold, cell.starts
		return contender.run(config)
	})
	for i, cell := range cells {
		starts := report.Cell("any")
		if cell.starts > 0 {
			starts = report.Num(cell.starts)
		}
		for j, contender := range all {
			at := (i*len(all) + j) * len(counts)
			one, many := results[at], results[at+1]
			ratio := func(of func(cluster.Result) float64) report.Cell {
				return report.Num(statsOf(many, of).mean / statsOf(one, of).mean)
			}
			cold := statsOf(many, createdOf)
			t.Add(starts, report.Num(milliseconds(cell.hold)), contender.name, ratio(cluster.Result.Throughput), ratio(createdOf), ratio(setupOf),
				report.Num(cold.mean), report.Num(cold.deviation))
		}
	}
	return t
}
