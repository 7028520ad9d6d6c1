package experiments

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// oracleLooks is how soon after a decision an oracle is asked again if a call comes: no
// decider looks more often.
const oracleLooks = 10 * time.Millisecond

// oracle is a decider that knows what no decider can, save one thing: when the first
// call comes, nobody can know that others will, so that it orders one instance as all
// do. At its next look it orders the rest of n, which was found by trying. A decider that
// orders some of them later has longer waits, since none of them leaves.
func oracle(n int) autoscaler.Decider {
	return func(s autoscaler.Snapshot, _ autoscaler.Params) autoscaler.Decision {
		there, wanted := s.Created+s.Creating, n
		if there == 0 {
			wanted = 1
		}
		return autoscaler.Decision{Create: max(0, wanted-there), Why: "Oracle", Required: wanted, RedecideAfter: oracleLooks}
	}
}

// feasibility is the best possible result in a cell.
type feasibility struct {
	// oracle is how many instances the oracle needs for the goal of the wait: the same
	// number whatever the seed, since it knows of the calls how many come in a second,
	// and not when. It is more than allowed if it needs more than that.
	oracle int
	// allowed is the largest number of instances that meets the goal of what is
	// created, at least 1.
	allowed int
}

func (f feasibility) feasible() bool { return f.oracle <= f.allowed }

func (f feasibility) word() string {
	if f.feasible() {
		return "yes"
	}
	return "no"
}

// explore finds the best possible result in a cell, given its results. More instances never
// wait longer, so the oracle's number is found by halving.
func (c burstCell) explore(o Options, results []burstResult) feasibility {
	f := feasibility{allowed: max(1, int(createdGoal*neededOf(results)))}
	enough := func(n int) bool {
		ratios := make([]float64, len(results))
		for i, r := range results {
			run := c.run(o, o.Seed+uint64(i), oracle(n), true)
			if run.lost > 0 {
				return false
			}
			ratios[i] = run.waitBeside(r.runs["FPCSch"])
		}
		return middle(ratios) <= waitSlack
	}
	low, high := 0, f.allowed+1
	for high-low > 1 {
		if n := (low + high) / 2; enough(n) {
			high = n
		} else {
			low = n
		}
	}
	f.oracle = high
	return f
}

func neededOf(results []burstResult) float64 {
	return statsOf(results, func(r burstResult) float64 { return float64(r.needed) }).mean
}

// waitBeside is how many times another's p99 wait a run's is.
func (r burstRun) waitBeside(other burstRun) float64 {
	return counted(r.p99).Seconds() / counted(other.p99).Seconds()
}

// middle is the median, and sorts the values.
func middle(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
