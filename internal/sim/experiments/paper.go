package experiments

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/sim/report"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// What the paper says of its machines and its function (II-B, V-B, V-C), and what
// follows from it.
const (
	paperWorkers = 8
	paperSlots   = 40
	slotMemory   = 256 << 20

	paperWork = 2 * time.Millisecond
	// paperSetup is the set-up of a warm call; paperAdmit of it passes before the
	// call is in its queue, and paperClaim after an instance was handed it.
	paperSetup = 9800 * time.Microsecond
	paperAdmit = paperSetup - paperClaim
	paperClaim = 2 * time.Millisecond
	// paperAnswer is what remains of the 52.6 ms that a client's round took when
	// 110 clients made 2,090.98 calls a second.
	paperAnswer = 52600*time.Microsecond - paperSetup - paperWork
	// paperHold is how long an instance is held after its work, while logs are
	// collected and a record is stored.
	paperHold = 20 * time.Millisecond
	// paperStarts is how many containers a worker starts at a time, and paperRemove
	// how long it takes to remove one.
	paperStarts = 4
	paperRemove = 100 * time.Millisecond
)

// paperStart is that of a container and its runtime: more than 200 ms, and 50 to
// 100 ms.
func paperStart() cluster.Distribution {
	return cluster.Uniform(250*time.Millisecond, 400*time.Millisecond)
}

func paperOverheads() cluster.Overheads {
	return cluster.Overheads{Admit: paperAdmit, Claim: paperClaim, Answer: paperAnswer, Pull: paperHold}
}

// paperFunctions are functions like the paper's short one.
func paperFunctions(n int) []cluster.Function {
	return []cluster.Function{{
		Copies: n, Requests: slotRequest(),
		Work: cluster.LogNormal(paperWork, 3*paperWork), Start: paperStart(),
	}}
}

func paperNodes(workers int) cluster.Nodes {
	return cluster.Nodes{Count: workers, Starts: paperStarts, Allocatable: placement.Amount{MilliCPU: 8000, Memory: paperSlots * slotMemory, Pods: paperSlots}}
}

// paperConfig is a cluster like the paper's with n functions and clients.
func paperConfig(seed uint64, n int, clients cluster.Clients) cluster.Config {
	clients.Functions = n
	return cluster.Config{
		Seed: seed, Nodes: []cluster.Nodes{paperNodes(paperWorkers)}, Functions: paperFunctions(n),
		Clients: []cluster.Clients{clients}, Overheads: paperOverheads(),
	}
}

func paperParameters() []report.Parameter {
	return []report.Parameter{
		{Name: "workers", Value: fmt.Sprintf("%d of %d instances of 256 MB", paperWorkers, paperSlots), Source: "paper V-B"},
		{Name: "controllers (hashsch)", Value: "3, each with a third of every worker", Source: "paper V-B, III-C"},
		{Name: "work of a call", Value: "log-normal, median 2 ms, p99 6 ms", Source: "median: paper II-B; spread: assumed"},
		{Name: "start of an instance", Value: "uniform, 250 to 400 ms", Source: "paper II-B: more than 200 ms for the container, 50 to 100 ms for its runtime; the upper end is assumed"},
		{Name: "set-up of a warm call", Value: "9.8 ms, of which 2 ms hold the instance", Source: "paper Fig. 3c; the division is assumed"},
		{Name: "instance held after its work", Value: "20 ms", Source: "assumed (logs and records, which OpenWhisk awaits); chosen, with the next, so that FPCSch's cold starts grow as in the paper; see the table held"},
		{Name: "starts at a time on a worker", Value: "4", Source: "assumed: with it starts take 0.7 to 1.3 s in a rush, as the authors report (OpenWhisk issue 3621)"},
		{Name: "removal of a container (hashsch)", Value: "100 ms", Source: "assumed"},
		{Name: "from answer to next call", Value: "40.8 ms", Source: "derived from paper V-D: 110 clients made 2,090.98 calls/s with hashsch, 52.6 ms a round"},
		{Name: "clients", Value: "closed loop, each call to a function at random; all begin at once", Source: "closed loop: paper V-B; choice: assumed; at once: the load generator's default"},
	}
}

// contender is a scheduler that is compared with others.
type contender struct {
	// name is how reports and charts call it.
	name string
	run  func(cluster.Config) cluster.Result
}

// deciding is Windlass with a decider, and as many gateways as the options say.
func deciding(o Options, decided string) contender {
	return contender{name: decided, run: func(c cluster.Config) cluster.Result {
		c.Decider, c.Gateways = decider(decided), o.Gateways
		return mustRun(c)
	}}
}

// contenders are our decider, the paper's, and what the paper compares with.
func contenders(o Options) []contender {
	return []contender{deciding(o, "Horizon"), deciding(o, "FPCSch"), {name: baseline, run: func(c cluster.Config) cluster.Result {
		c.Hash = &cluster.Hash{Controllers: 3, Slots: paperSlots, Remove: paperRemove}
		return mustRun(c)
	}}}
}

// baseline is the scheduler that the paper compares with.
const baseline = "hashsch"
