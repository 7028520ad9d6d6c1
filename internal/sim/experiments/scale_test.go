package experiments

import (
	"slices"
	"testing"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
)

// Calls that a small cluster refuses or loses count, also if larger ones answer all.
func TestUnansweredCallsOfEachClusterCount(t *testing.T) {
	r := scaleReport(Options{Size: scaleExperiment.Full}, func(c cluster.Config) cluster.Result {
		var result cluster.Result
		switch c.Nodes[0].Count {
		case 100:
			result.Total.Refused = 2
		case 1000:
			result.Total.Expired = 1
		}
		return result
	})
	i := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Name == "refused" })
	if f := r.Findings[i]; f.Value != 3 || f.Met() {
		t.Errorf("the finding is %+v; want 3, and a goal that is not met", f)
	}
}
