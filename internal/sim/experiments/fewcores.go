package experiments

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var fewCores = Experiment{
	Name:           "fewcores",
	Summary:        "nodes with fewer cores than calls, in a cluster: what Horizon orders for them, and the call scheduling paper's fewer nodes",
	CountsGateways: true,
	Full:           Size{Seeds: 5, Scale: 1},
	Quick:          Size{Seeds: 1, Scale: .5, Sparse: true},
	run:            runFewCores,
}

const (
	fewCoresOf = 4
	// fewOrdered is the goal: what is ordered on a node that orders calls, beside its cores.
	fewOrdered = 2
)

// fewCell is calls of one function that come to a node of fewCoresOf cores.
type fewCell struct {
	work time.Duration
	load float64 // of the node's cores
	// order is nil where calls share the cores.
	order *callorder.Params
}

func (c fewCell) config(o Options, seed uint64) cluster.Config {
	phase := time.Duration(rand.New(rand.NewPCG(seed, 0)).Int64N(int64(100 * time.Millisecond)))
	const start = 500 * time.Millisecond
	return cluster.Config{
		Seed: seed, Decider: decider("Horizon"),
		Nodes: []cluster.Nodes{{Count: 1, Allocatable: placement.Amount{Pods: 10000}, Capacity: cluster.Demand{CPU: fewCoresOf}, Order: c.order}},
		Functions: []cluster.Function{{
			Requests: placement.Amount{Pods: 1}, Demand: cluster.Demand{CPU: 1},
			Work: cluster.Exponential(c.work), Start: cluster.Fixed(start), KnownWork: c.work, KnownStart: start,
		}},
		Loads: []cluster.Load{cluster.Poisson{Rate: c.load * fewCoresOf / c.work.Seconds(), From: phase, Until: phase + o.length(burstLength)}},
	}
}

// fewPair is a cell without and with an order, over the seeds.
type fewPair struct {
	cell          fewCell
	without, with []cluster.Result
}

func fewPairs(o Options) []fewPair {
	works, loads := []time.Duration{50 * time.Millisecond, 500 * time.Millisecond}, []float64{.5, .8, 1.2, 1.5}
	if o.Sparse {
		works, loads = works[:1], []float64{.8, 1.5}
	}
	var pairs []fewPair
	for _, work := range works {
		for _, load := range loads {
			pairs = append(pairs, fewPair{cell: fewCell{work: work, load: load}})
		}
	}
	order := callorder.DefaultParams(fewCoresOf)
	runs := grid(o, 2*len(pairs), func(i int, seed uint64) cluster.Result {
		c := pairs[i/2].cell
		if i%2 == 1 {
			c.order = &order
		}
		return mustRun(c.config(o, seed))
	})
	for i := range pairs {
		pairs[i].without, pairs[i].with = runs[2*i], runs[2*i+1]
	}
	return pairs
}

func fewOrderedOf(results []cluster.Result) float64 {
	return statsOf(results, createdOf).mean
}

func fewTable(pairs []fewPair) report.Table {
	t := report.Table{Name: "ordered", Caption: "instances that Horizon orders for one node of four cores, where calls share them, and where they ask for one", Columns: []string{
		"work ms", "load", "cores", "ordered", "answer mean s", "execution / work", "wait for a core mean s",
	}}
	for _, p := range pairs {
		for _, kind := range []struct {
			name    string
			results []cluster.Result
		}{{"shared", p.without}, {"asked for", p.with}} {
			mean := func(figure func(cluster.Result) float64) report.Cell {
				return report.Num(statsOf(kind.results, figure).mean)
			}
			t.Add(report.Num(milliseconds(p.cell.work)), report.Num(p.cell.load), kind.name, mean(createdOf),
				mean(func(r cluster.Result) float64 { return (r.Total.Setup.Mean() + r.Total.Execution.Mean()).Seconds() }),
				mean(func(r cluster.Result) float64 { return r.Total.Execution.Mean().Seconds() / p.cell.work.Seconds() }),
				mean(func(r cluster.Result) float64 { return r.Total.CoreWait.Mean().Seconds() }))
		}
	}
	return t
}

func fewFindings(pairs []fewPair) []report.Finding {
	most, beside, shared := 0.0, 0.0, 0.0
	for _, p := range pairs {
		with, without := fewOrderedOf(p.with), fewOrderedOf(p.without)
		most = max(most, with/fewCoresOf)
		beside = max(beside, with/without)
		shared = max(shared, without/fewCoresOf)
	}
	return []report.Finding{
		report.Found("ordered_to_cores_worst", most).Most(fewOrdered).Compare("instances that Horizon orders for a node on which calls ask for cores"),
		report.Found("ordered_with_to_without_worst", beside).Compare("beside those that it orders where calls share the cores"),
		report.Found("ordered_shared_to_cores_worst", shared).Compare("where calls share the cores"),
	}
}

// zukCluster is the paper's functions on several nodes of 18 cores.
type zukCluster struct {
	nodes int
	order *callorder.Params
	// slots has a controller push calls to nodes that hold that many containers each, where one starts for each
	// call that finds none; 0 has instances pull.
	slots int
	// start is how long a container takes then.
	start time.Duration
}

const (
	zukClusterCores = 18
	zukCalls        = 2376
	// zukSlots are the containers of 256 MB in the paper's 32 GB.
	zukSlots = 128
	// zukColdStart is how long a container of the paper's OpenWhisk takes.
	zukColdStart = 2 * time.Second
)

// Names of clusters to which calls are pushed: those of the paper, and those whose nodes hold no more containers than they have cores.
const (
	zukPushed       = "pushed, 128 each, starts of 2 s"
	zukPushedWarm   = "pushed, 128 each, starts of 0"
	zukSpilling     = "pushed, 18 each, starts of 2 s"
	zukSpillingWarm = "pushed, 18 each, starts of 0"
)

func (c zukCluster) config(o Options, seed uint64) cluster.Config {
	each := zukClusterCores * len(zukFunctions)
	config := cluster.Config{
		Seed: seed, Decider: decider("Horizon"),
		Nodes: []cluster.Nodes{{
			Count: c.nodes, Allocatable: placement.Amount{Pods: int64(each)},
			Capacity: cluster.Demand{CPU: zukClusterCores}, Order: c.order,
		}},
	}
	if c.slots > 0 {
		config.Decider, config.Hash = nil, &cluster.Hash{Controllers: 1, Slots: c.slots}
	}
	for _, f := range zukFunctions {
		config.Functions = append(config.Functions, c.zukFunction(f.ms, f.kind == node.Compute))
	}
	r := rand.New(rand.NewPCG(seed, 31))
	var calls cluster.Given
	for i := range max(2*len(zukFunctions), o.scaled(zukCalls)) {
		f := i % len(zukFunctions)
		work := float64(config.Functions[f].KnownWork) * (.97 + .06*r.Float64())
		// The first second is for the warm instances to be there.
		at := time.Second + time.Duration(r.Float64()*o.Scale*float64(zukWindow))
		calls = append(calls, cluster.Call{At: at, Function: f, Work: time.Duration(work)})
	}
	slices.SortFunc(calls, func(a, b cluster.Call) int { return int(a.At - b.At) })
	config.Loads = []cluster.Load{calls}
	return config
}

// zukFunction is one of the paper's, with as many warm instances as all cores could run unless calls
// are pushed.
func (c zukCluster) zukFunction(ms int, computes bool) cluster.Function {
	f := cluster.Function{
		Requests: placement.Amount{Pods: 1}, KnownWork: time.Duration(ms) * time.Millisecond,
		KnownStart: zukColdStart, Start: cluster.Fixed(c.start),
	}
	if computes {
		f.Demand.CPU = 1
	}
	if c.slots == 0 {
		f.Limits.Min = zukClusterCores * c.nodes
	}
	return f
}

// zukClusters are what is compared, by name.
func zukClusters() (names []string, kinds []zukCluster) {
	fair := ticketParams(zukClusterCores, callorder.FairChoice)
	fair.BlockedAfter = 0
	serpt := callorder.DefaultParams(zukClusterCores)
	for _, k := range []struct {
		name string
		of   zukCluster
	}{
		{"none", zukCluster{}}, {"fair-choice", zukCluster{order: &fair}}, {"serpt", zukCluster{order: &serpt}},
		{zukPushed, zukCluster{slots: zukSlots, start: zukColdStart}}, {zukPushedWarm, zukCluster{slots: zukSlots}},
		{zukSpilling, zukCluster{slots: zukClusterCores, start: zukColdStart}}, {zukSpillingWarm, zukCluster{slots: zukClusterCores}},
	} {
		names, kinds = append(names, k.name), append(kinds, k.of)
	}
	return names, kinds
}

// zukClusterRuns are the results by nodes and kind.
type zukClusterRuns struct {
	names []string
	cells []zukCluster
	runs  [][]cluster.Result
}

func zukClusterOver(o Options) zukClusterRuns {
	names, kinds := zukClusters()
	s := zukClusterRuns{names: names}
	for n := 1; n <= 4; n++ {
		for _, k := range kinds {
			k.nodes = n
			s.cells = append(s.cells, k)
		}
	}
	s.runs = grid(o, len(s.cells), func(i int, seed uint64) cluster.Result { return mustRun(s.cells[i].config(o, seed)) })
	return s
}

// responseOf is how long callers wait in the mean.
func responseOf(r cluster.Result) float64 {
	return (r.Total.Setup.Mean() + r.Total.Execution.Mean()).Seconds()
}

func (s zukClusterRuns) clusterTable() report.Table {
	t := report.Table{Name: "nodes", Caption: "2,376 calls of the call scheduling paper on one to four nodes of 18 cores (paper Table V: FC 109, 100, 68.6, 80.7 s; OpenWhisk 521, 251, 246, 240)", Columns: []string{
		"nodes", "order, or where calls are pushed", "response mean s", "cold calls", "last s",
	}}
	for i, c := range s.cells {
		mean := func(figure func(cluster.Result) float64) report.Cell {
			return report.Num(statsOf(s.runs[i], figure).mean)
		}
		t.Add(report.Num(c.nodes), s.names[i%len(s.names)], mean(responseOf),
			mean(func(r cluster.Result) float64 { return float64(r.Total.Cold) }), mean(func(r cluster.Result) float64 { return r.LastAnswer.Seconds() }))
	}
	return t
}

func (s zukClusterRuns) response(nodes int, name string) float64 {
	for i, c := range s.cells {
		if c.nodes == nodes && s.names[i%len(s.names)] == name {
			return statsOf(s.runs[i], responseOf).mean
		}
	}
	panic("experiments: no cell of " + name)
}

func (s zukClusterRuns) findings() []report.Finding {
	three := func(order, beside string) float64 { return s.response(3, order) / s.response(4, beside) }
	pulled, warm := s.response(4, "none"), s.response(4, zukPushedWarm)
	return []report.Finding{
		report.Found("three_nodes_fair_choice_to_four_pushed", three("fair-choice", zukPushed)).Most(1).Compare("mean response; paper, to OpenWhisk: 0.29"),
		report.Found("three_nodes_none_to_four_pushed", three("none", zukPushed)).Compare("without an order"),
		report.Found("four_pushed_longer_by_full_homes_s", warm-pulled).Compare("than pulled, with starts of 0"),
		report.Found("four_pushed_longer_by_cold_starts_s", s.response(4, zukPushed)-warm).Compare("with starts of 2 s beside starts of 0"),
		report.Found("three_nodes_fair_choice_to_four_spilling", three("fair-choice", zukSpillingWarm)).Compare("pushed on once 18 calls are there, starts of 0: nothing is left"),
		report.Found("three_nodes_fair_choice_to_four_without", three("fair-choice", "none")).Compare("warm instances that pull"),
		report.Found("three_nodes_serpt_to_four_without", three("serpt", "none")).Compare("warm instances that pull"),
	}
}

// pushedNote says why pushed calls are slow.
func (s zukClusterRuns) pushedNote() string {
	pulled, warm, pushed := s.response(4, "none"), s.response(4, zukPushedWarm), s.response(4, zukPushed)
	homes := 100 * (warm - pulled) / (pushed - pulled)
	return fmt.Sprintf("Three nodes with Fair-Choice are better than four to which calls are pushed, but so are three without an order: the order gains nothing here. "+
		"Of the time that pushed calls take longer on four nodes, %.0f %% comes from full homes and %.0f %% from cold starts. All calls of dna-visualisation go to one node, which has room for %d calls and cores for %d, while other nodes are idle. "+
		"With no more containers than cores calls leave a full home, and with starts of 0 nothing is left of the difference; with starts of 2 s nearly every call is cold then, because 11 functions take those few containers from each other. "+
		"So the ratio depends on how many containers a node holds, which is assumed for the paper's nodes, and that it is near the paper's is chance. Seconds are not the paper's (240 with four nodes): "+
		"containers of the paper's baseline were warm at first, four calls in five were cold in spite of that on one node, and the management of containers and the resource that calls seem to share are not modelled; the experiment callorder has the latter. The paper's Fair-Choice was pushed to. "+
		"Beside instances that pull, four nodes of 18 cores have nothing to order: they can compute almost twice what comes.",
		homes, 100-homes, zukSlots, zukClusterCores)
}

func runFewCores(o Options) (report.Report, error) {
	pairs, zuk := fewPairs(o), zukClusterOver(o)
	return report.Report{
		Title: "nodes with fewer cores than calls: what is ordered for them, and what fewer of them do",
		Parameters: []report.Parameter{
			{Name: "ordered", Value: fmt.Sprintf("one node of %d cores with room for 10,000 instances; calls of one function, Poisson, for %v; exponential work, starts of 0.5 s; both means are known", fewCoresOf, o.length(burstLength)), Source: "assumed"},
			{Name: "calls that ask", Value: "the default order serpt; the node counts as busy all the time", Source: "pkg/nodeagent/callorder"},
			{Name: "nodes", Value: "11 functions, as many calls of each, uniform within 60 s; 18 warm instances of each function for each node", Source: "call scheduling paper VI, VIII"},
			{Name: "pushed", Value: "by hash, with one controller, to the function's home until that has as many calls as it holds containers, then to the next node; a container starts for each call that finds none of its function", Source: "the paper's OpenWhisk (package hashsch)"},
			{Name: "128 each", Value: "32 GB of memory for containers of 256 MB", Source: "32 GB: paper VI, for its workers in VIII as well; 256 MB: OpenWhisk's default, since the paper does not say what it had. Its Fig. 2b fits: 110 containers had room in 32 GB"},
			{Name: "18 each", Value: "no more containers than cores, so calls leave their home once its cores are taken", Source: "to compare with"},
			{Name: "starts of 2 s", Value: "no container is warm at first", Source: "almost 2 s: paper VI; its containers were warm at first, and four in five calls cold in spite of that"},
		},
		Tables:   []report.Table{fewTable(pairs), zuk.clusterTable()},
		Findings: append(fewFindings(pairs), zuk.findings()...),
		Notes: []string{
			"Instances that wait for a core hold a call each. Horizon sees calls that wait and instances that are busy; more instances do not end them sooner once each core has a call. What it orders beyond the cores is memory without use.",
			zuk.pushedNote(),
			"Without an order, calls that share the cores take longer, which Horizon learns as their work.",
		},
	}, nil
}
