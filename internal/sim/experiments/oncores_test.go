package experiments

import (
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/windlass-dev/windlass/internal/sim/node"
)

// dataFolder has recorded workloads; it is beside the project, not in it.
const dataFolder = "../../../../shared/data"

// within fails unless a figure is that close to what an independent simulation found.
func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s is %.4g, want %.4g within %.0f %%", what, got, want, 100*tolerance)
	}
}

// The figures in the following tests are those of other programs, written before these.

func TestFilterAgreesWithAnotherSimulation(t *testing.T) {
	for _, tt := range []struct{ load, shorts, longs float64 }{{.9, 1.2, 1.03}, {1.1, 15, 1.19}, {1.5, 46.5, 1.18}} {
		l := sfsLoad{load: tt.load}
		var runs []sfsRun
		for seed := range uint64(4) {
			r := sfsRun{calls: l.calls(Options{Size: sfs.Full}, seed), results: map[string][]node.Result{}}
			r.results[sfsShares] = onNode(sfsCores, r.calls, node.Sharing{})
			r.results[sfsFilter] = onNode(sfsCores, r.calls, node.PublishedFilter())
			runs = append(runs, r)
		}
		cell := sfsCell{l, runs}
		// Near full load queues are longer or shorter by chance.
		within(t, "shorts", cell.faster(sfsFilter), tt.shorts, .25)
		within(t, "longs", cell.slower(sfsFilter), tt.longs, .05)
	}
}

func TestHybridAgreesWithAnotherSimulation(t *testing.T) {
	if _, err := os.Stat(dataFolder + "/" + hybridFile); err != nil {
		t.Skipf("it replays a recorded workload: %v", err)
	}
	calls, err := loadHybrid(os.DirFS(dataFolder), Options{Size: hybrid.Full})
	if err != nil {
		t.Fatal(err)
	}
	if len(calls) != 12442 {
		t.Fatalf("%d calls, want 12,442", len(calls))
	}
	for name, want := range map[string]struct{ mean, tail, cost float64 }{
		hybridCFS: {26.8, 160, 2.706}, "FIFO tickets": {47.5, 91, .089}, "SFS-like, 1633 ms": {28.1, 203, 2.771},
		"SEPT tickets, known": {10.9, 159, .089}, "aged SEPT 0.03, known": {11.2, 130, .089},
	} {
		policies := hybridPolicies(knownWork(calls), true)
		p := policies[slices.IndexFunc(policies, func(p nodePolicy) bool { return p.name == name })]
		results := onNode(hybridCores, calls, p.Policy)
		within(t, name+": mean turnaround", hybridTurnaround(results), want.mean, .01)
		// Orders by learnt sizes are not those by classes.
		within(t, name+": p99 turnaround", hybridTurnaroundTail(results), want.tail, .08)
		within(t, name+": cost", hybridBill(results), want.cost, .01)
	}
}

func TestOrdersAgreeWithAnotherSimulation(t *testing.T) {
	c := zukCell{cores: 10, intensity: 60, shared: true}
	for order, want := range map[string]float64{"fifo": 90.7, "sept": 17.2, "fair-choice": 17.2, "eect": 63.3} {
		policies := zukPolicies(c.cores)
		p := policies[slices.IndexFunc(policies, func(p nodePolicy) bool { return p.name == order })]
		sum := 0.0
		for seed := range uint64(4) {
			sum += c.run(Options{Size: callOrder.Full}, seed, p).response() / 4
		}
		within(t, order, sum, want, .07)
	}
}

func TestBadHybridDataIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"no such file": "", "lacks": "a,b\n1,2\n", "line 2": "observed_arrival_s,fib_n,cpu_ms_q1_of_14_runs\nx,1,2\n",
		"no call": "observed_arrival_s,fib_n,cpu_ms_q1_of_14_runs\n", "empty": " ",
	} {
		data := fstest.MapFS{hybridFile: {Data: []byte(strings.TrimSpace(text))}}
		if name == "no such file" {
			data = fstest.MapFS{}
		}
		if _, err := loadHybrid(fs.FS(data), Options{Size: hybrid.Full}); err == nil {
			t.Errorf("%s: no error", name)
		} else if name != "no such file" && !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one about %q", err, name)
		}
	}
	if _, err := loadHybrid(nil, Options{Size: hybrid.Full}); err == nil || !strings.Contains(err.Error(), "name a folder") {
		t.Errorf("no data: error %v", err)
	}
}

func TestBurstyGapsAreThoseOfTheWorkload(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 1_000_000
	sum, squares := 0.0, 0.0
	for range n {
		gap := sfsLoad{bursty: true}.relativeGap(r)
		sum += gap
		squares += gap * gap
	}
	mean := sum / n
	within(t, "the mean gap", mean, 1, .01)
	within(t, "the coefficient of variation", math.Sqrt(squares/n-mean*mean)/mean, 2.33, .01)
}
