package experiments

import (
	"math"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// knownFindings are about functions that were called before: the goals are.
func knownFindings(known []burstSummary) []report.Finding {
	ours := cellsOf("Horizon", known)
	feasible := feasibleOf(ours)
	created, _ := worst(feasible, createdToNeeded)
	_, createdMean := worst(ours, createdToNeeded)
	wait, _ := worst(feasible, waitToFPCSch)
	_, waitMean := worst(ours, waitToFPCSch)
	turns, _ := worst(ours, func(s burstSummary) float64 { return s.reversals })
	findings := []report.Finding{
		report.Found("feasible_cells", float64(len(feasible))).Compare("of %d cells, by the oracle", len(ours)),
		report.Found("horizon_feasible_cells_met", float64(metOf(feasible))).Least(float64(len(feasible))).Compare("%d of all %d cells", metOf(ours), len(ours)),
		report.Found("horizon_created_to_needed_worst", created).Most(createdGoal).Compare("of the feasible cells; geometric mean of all cells %.3g", createdMean),
		report.Found("horizon_p99_wait_to_fpcsch_worst", wait).Most(waitSlack).Compare("of the feasible cells; geometric mean of all cells %.3g", waitMean),
		report.Found("horizon_reversals_after_10s_worst", turns).Most(0),
	}
	for _, name := range deciderNames[1:] {
		cells := cellsOf(name, known)
		created, mean := worst(cells, createdToNeeded)
		findings = append(findings,
			report.Found(name+"_created_to_needed_worst", created).Compare("geometric mean %.3g", mean),
			report.Found(name+"_feasible_cells_met", float64(metOf(feasibleOf(cells)))))
	}
	return findings
}

// freshFindings are about functions that were never called before.
func freshFindings(fresh []burstSummary) []report.Finding {
	var findings []report.Finding
	for _, name := range deciderNames {
		created, mean := worst(cellsOf(name, fresh), createdToNeeded)
		wait, waitMean := worst(cellsOf(name, fresh), waitToFPCSch)
		findings = append(findings,
			report.Found("fresh_"+name+"_created_to_needed_worst", created).Compare("geometric mean %.3g", mean),
			report.Found("fresh_"+name+"_p99_wait_to_fpcsch_worst", wait).Compare("geometric mean %.3g", waitMean))
	}
	return findings
}

// worst is the largest figure over some cells, and mean the geometric mean.
func worst(cells []burstSummary, figure func(burstSummary) float64) (worst, mean float64) {
	for _, s := range cells {
		worst = max(worst, figure(s))
		mean += math.Log(figure(s))
	}
	return worst, math.Exp(mean / float64(len(cells)))
}

func createdToNeeded(s burstSummary) float64 { return s.ratio() }
func waitToFPCSch(s burstSummary) float64    { return s.toFPCSch }

// cellsOf are a decider's cells.
func cellsOf(decider string, all []burstSummary) (cells []burstSummary) {
	for _, s := range all {
		if s.decider == decider {
			cells = append(cells, s)
		}
	}
	return cells
}

// feasibleOf are those of some cells in which the oracle meets the goals.
func feasibleOf(cells []burstSummary) (feasible []burstSummary) {
	for _, s := range cells {
		if s.feasibility.feasible() {
			feasible = append(feasible, s)
		}
	}
	return feasible
}

func metOf(cells []burstSummary) (met int) {
	for _, s := range cells {
		if s.met() {
			met++
		}
	}
	return met
}
