package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

// rowsOf are the rows of a report's tables that begin with a cell, or have it second.
func rowsOf(r report.Report, first string) (rows []string) {
	for _, t := range r.Tables {
		for _, row := range t.Rows {
			if slices.Contains(row, report.Cell(first)) {
				rows = append(rows, fmt.Sprint(row))
			}
		}
	}
	return rows
}

// The option concerns Windlass alone: what it is compared with pushes its calls.
func TestGatewaysAreAnOption(t *testing.T) {
	for _, e := range All() {
		if e.CountsGateways {
			_, err := e.Run(Options{Size: tinySize, Gateways: 3})
			if err == nil || !strings.Contains(err.Error(), "Gateways is 3") {
				t.Errorf("%s with a number of gateways: error %v", e.Name, err)
			}
			continue
		}
		queue, three := tryOut(t, e, Options{Seed: 1}), tryOut(t, e, Options{Seed: 1, Gateways: 3})
		if len(three.Parameters) != len(queue.Parameters)+len(gatewayParameters(3)) {
			t.Errorf("%s does not say that it has gateways: %+v", e.Name, three.Parameters)
		}
		if (e.Name == fig3.Name || e.Name == burst.Name) && slices.Equal(rowsOf(queue, "Horizon"), rowsOf(three, "Horizon")) {
			t.Errorf("%s: three gateways change nothing", e.Name)
		}
		if !slices.Equal(rowsOf(queue, baseline), rowsOf(three, baseline)) {
			t.Errorf("%s: gateways change %s", e.Name, baseline)
		}
	}
}

// A ratio is that of the means over seeds, and a finding the geometric mean of the cells' ratios.
func TestRatiosToACentralQueue(t *testing.T) {
	cell := func(cell string, central, ten float64) probed {
		p := probed{probe: probe{experiment: "e", cell: cell, figures: []string{"wait p99"}}}
		for _, v := range variants() {
			mean := central
			if v.gateways == 10 {
				mean = ten
			}
			p.means = append(p.means, []float64{mean})
		}
		return p
	}
	findings := ratioFindings([]probed{cell("a", 2, 4), cell("b", 10, 5.12)})
	if len(findings) != len(gatewayCounts) {
		t.Fatalf("%d findings, want one for each number of gateways", len(findings))
	}
	for i, want := range []float64{1, 1, math.Sqrt(2 * .512)} {
		if got := findings[i]; math.Abs(got.Value-want) > 1e-6 || !got.Met() {
			t.Errorf("%+v, want %v, which meets the goal", got, want)
		}
	}
	if last := findings[2]; last.Name != "e_wait_p99_10_gateways" || !strings.HasPrefix(last.Beside, "2 cells: 0.512 to 2") {
		t.Errorf("%s compares with %q", last.Name, last.Beside)
	}
	if far := ratioFindings([]probed{cell("a", 2, 2.1)})[2]; far.Met() {
		t.Errorf("%+v is 5 %% off, and meets the goal", far)
	}
}

func TestProbesRunEachSeedWithEachVariant(t *testing.T) {
	seen := map[uint64][]int{}
	one := probe{experiment: "e", cell: "c", figures: []string{"f"}, repeats: 2, run: func(o Options, seed uint64) ([]float64, error) {
		seen[seed] = append(seen[seed], o.Gateways)
		return []float64{float64(seed)}, nil
	}}
	o := Options{Size: Size{Seeds: 2, Scale: 1}, Seed: 5, Each: func(n int, do func(int)) {
		for i := range n {
			do(i)
		}
	}}
	all, err := runProbes(o, []probe{one})
	if err != nil || all[0].means[0][0] != 6.5 || all[0].means[1][0] != 6.5+otherSeeds {
		t.Fatalf("error %v, %+v", err, all)
	}
	for seed := uint64(5); seed < 9; seed++ {
		if want := []int{0, 1, 3, 10, 1, 10}; !slices.Equal(seen[seed], want) || !slices.Equal(seen[seed+otherSeeds], []int{0}) {
			t.Errorf("seed %d: gateways %v and %v", seed, seen[seed], seen[seed+otherSeeds])
		}
	}
}

// Two gateways take twice the calls of one whose processor is the limit, of 10,000 a second.
func TestTwoGatewaysAreTwiceOne(t *testing.T) {
	o := Options{Size: Size{Seeds: 1, Scale: .2}, Seed: 1}
	one, two := mustRun(bottleneckConfig(o, 1, 1)), mustRun(bottleneckConfig(o, 2, 1))
	if rate := bottleneckRate(one); math.Abs(rate/10_000-1) > .02 {
		t.Errorf("one gateway answers %v calls a second, want 10,000", rate)
	}
	if ratio := bottleneckRate(two) / bottleneckRate(one); ratio < twoBesideOne || ratio > 2.05 {
		t.Errorf("two gateways answer %v times what one does", ratio)
	}
}
