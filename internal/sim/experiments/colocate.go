package experiments

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/node"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

var coLocation = Experiment{
	Name:           "colocate",
	Summary:        "the ETH report on co-location: a latency-critical service and six batch jobs on 4 cores, by five controllers",
	CountsGateways: true,
	Full:           Size{Seeds: 5, Scale: 1},
	Quick:          Size{Seeds: 2, Scale: 1, Sparse: true},
	run:            runColocate,
}

const (
	colocateFile = "mcperf_seed42_5000_100000_360.csv"
	// colocateTime is how long the load lasts, and colocateMakespan the report's for all jobs.
	colocateTime     = 1800 * time.Second
	colocateMakespan = 1570
	// colocateSteps is how many loads a trace has: one for each 5 s.
	colocateSteps = 360
	// The goals: violations in percent at 10 s and 5 s steps, and batch work beside two-state's.
	colocateCalm, colocateFast, colocateWork = 1, 2, 1.15
	// And which part of its work batch must do where it is not to blame that the service waits.
	colocateVain = .9

	// colocateLook is how often the two-state controller looks.
	colocateLook = 500 * time.Millisecond

	// Tuned on the report's violations at 10 s steps, and on nothing else.
	colocateRequest = 9980 * time.Nanosecond
)

// colocateService is the report's memcached. Its own figures of processor time are lost with its
// pictures.
func colocateService() node.Service {
	return node.Service{
		Time: colocateRequest, Variation: 1, Threads: 2, Packed: 1, Outstanding: 16 * 4 * 4, Objective: 1500 * time.Microsecond,
		Late: .01, Stall: 3100 * time.Microsecond, Cold: 1.2, Switch: 3 * time.Microsecond,
	}
}

// colocateJobs are the report's, in an order in which the first two start where the report's did.
// Work is what makes the two-state controller take the report's times.
var colocateJobs = []node.BatchJob{
	{Name: "freqmine", Threads: 4, Work: 963 * time.Second, Length: colocate.Long},
	{Name: "fft", Threads: 1, Work: 183 * time.Second, Length: colocate.Short},
	{Name: "dedup", Threads: 1, Work: 134 * time.Second, Length: colocate.Short},
	{Name: "ferret", Threads: 4, Work: 1925 * time.Second, Length: colocate.Long},
	{Name: "canneal", Threads: 1, Work: 604 * time.Second, Length: colocate.Medium},
	{Name: "blackscholes", Threads: 2, Work: 549 * time.Second, Length: colocate.Medium},
}

// colocatePaper is what the report says of its jobs, in seconds, in the order above.
var colocatePaper = []float64{481.7, 208.3, 166.3, 962.3, 728.3, 403.0}

// Names of controllers that findings are about.
const (
	colocateStatic   = "static blocks"
	colocateTwoState = "two-state (report)"
	colocateBands    = "bands"
	colocateNeed     = "bands, blocks by need"
	colocateOurs     = "bands, blocks on waits"
	colocateBelieves = "the same, no doubts"
)

// colocatePolicy is a controller and how often it looks.
type colocatePolicy struct {
	name    string
	control colocate.Params
	look    time.Duration
}

func colocatePolicies() []colocatePolicy {
	static := colocate.Params{Cores: 4, Layout: colocate.Shared, Least: 2, Most: 2, Grow: .6, Shrink: .5}
	bands := colocate.Params{Cores: 4, Layout: colocate.Shared, Grow: .6, Shrink: .5}
	need := colocate.DefaultParams(4)
	need.OnWait = false
	const look = 100 * time.Millisecond
	return []colocatePolicy{
		{colocateStatic, static, look}, {colocateTwoState, colocate.TwoState(4), colocateLook},
		{colocateBands, bands, look}, {colocateNeed, need, look}, {colocateOurs, colocate.DefaultParams(4), look},
	}
}

// believing is ours without doubts: what is kept back stays so for as long as the service waits.
func believing() colocatePolicy {
	control := colocate.DefaultParams(4)
	control.JudgeFor = 0
	return colocatePolicy{colocateBelieves, control, 100 * time.Millisecond}
}

// colocateTrace is a trace of loads and where it comes from.
type colocateTrace struct {
	loads  []float64
	source string
}

// drawLoads makes a trace like mcperf's: each load is one of 5,000 to 100,000, all alike.
func drawLoads(seed uint64) []float64 {
	r := rand.New(rand.NewPCG(seed, 44))
	loads := make([]float64, colocateSteps)
	for i := range loads {
		loads[i] = float64(5000 + r.IntN(95001))
	}
	return loads
}

// loadColocate reads the loads that mcperf draws with seed 42, or draws others if there is no such
// file.
func loadColocate(data fs.FS) (colocateTrace, error) {
	const seed = 42
	drawn := colocateTrace{drawLoads(seed), "drawn here, all loads from 5,000 to 100,000 alike, because there is no " + colocateFile + " in the folder with traces"}
	if data == nil {
		return drawn, nil
	}
	file, err := data.Open(colocateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return drawn, nil
	}
	if err != nil {
		return colocateTrace{}, fmt.Errorf("experiments: the loads of colocate: %w", err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return colocateTrace{}, fmt.Errorf("experiments: %s: %w", colocateFile, err)
	}
	if len(rows) != colocateSteps+1 || len(rows[0]) < 2 {
		return colocateTrace{}, fmt.Errorf("experiments: %s has %d rows; it must have a heading and %d loads", colocateFile, len(rows), colocateSteps)
	}
	recorded := colocateTrace{source: "those that mcperf draws with seed 42 (" + colocateFile + ")"}
	for _, row := range rows[1:] {
		load, err := strconv.ParseFloat(row[1], 64)
		if err != nil || !(load > 0) {
			return colocateTrace{}, fmt.Errorf("experiments: %s has a load of %q", colocateFile, row[1])
		}
		recorded.loads = append(recorded.loads, load)
	}
	return recorded, nil
}

// colocateRun is a trace, how long a load lasts, and a controller that looks first after a part of
// its interval.
type colocateRun struct {
	loads   []float64
	every   time.Duration
	policy  colocatePolicy
	service node.Service
	others  node.Others
	phase   float64
	// scale is the factor on the time and on the work of jobs.
	scale float64
}

// colocated is what came out: of the report's jobs, and of the same jobs without an end.
type colocated struct {
	node.Colocated
	violations float64 // in percent
	endless    time.Duration
}

func (r colocateRun) colocation() node.Colocation {
	from := time.Duration(r.phase*float64(r.policy.look)) / (10 * time.Millisecond) * (10 * time.Millisecond)
	of := node.Colocation{
		Service: r.service, Load: r.loads, Every: r.every, Jobs: slices.Clone(colocateJobs), Others: r.others,
		Control: r.policy.control, Look: r.policy.look, From: from,
		Points: max(1, int(r.scale*colocateTime.Seconds()/r.every.Seconds())),
	}
	for i := range of.Jobs {
		of.Jobs[i].Work = time.Duration(r.scale * float64(of.Jobs[i].Work))
	}
	return of
}

// once runs the report's jobs to their end.
func (r colocateRun) once() (colocated, error) {
	of := r.colocation()
	out, err := node.Colocate(of)
	return colocated{Colocated: out, violations: 100 * float64(out.Violations) / float64(of.Points)}, err
}

// run also runs more jobs than can end.
func (r colocateRun) run() (colocated, error) {
	out, err := r.once()
	if err != nil {
		return out, err
	}
	of := r.colocation()
	of.For, of.Jobs = time.Duration(of.Points)*of.Every, slices.Repeat(of.Jobs, 2)
	endless, err := node.Colocate(of)
	out.endless = endless.Work
	return out, err
}

// colocateCells are runs by name and interval, one for each seed.
type colocateCells map[string]map[int][]colocated

func (c colocateCells) mean(policy string, every int, of func(colocated) float64) float64 {
	return statsOf(c[policy][every], of).mean
}

func (c colocateCells) worst(policy string, every int, of func(colocated) float64) float64 {
	worst := of(c[policy][every][0])
	for _, r := range c[policy][every] {
		worst = max(worst, of(r))
	}
	return worst
}

// work is the batch work that is done while there always is some, beside another policy's.
func (c colocateCells) work(policy, beside string, every int) float64 {
	done := func(r colocated) float64 { return r.endless.Seconds() }
	return c.mean(policy, every, done) / c.mean(beside, every, done)
}

func violationsOf(r colocated) float64 { return r.violations }
func makespanOf(r colocated) float64   { return r.Makespan.Seconds() }

// colocateEvery are the lengths of an interval, in seconds: the report's.
var colocateEvery = []int{10, 6, 5}

// runCells runs all policies for some lengths and each seed, with the loads of that seed.
func runCells(o Options, service node.Service, lengths []int, loads func(seed uint64) []float64) (colocateCells, error) {
	return runPolicies(o, colocatePolicies(), colocateRun{service: service}, lengths, loads)
}

// runPolicies runs some policies with what a run has beside.
func runPolicies(o Options, policies []colocatePolicy, run colocateRun, lengths []int, loads func(seed uint64) []float64) (colocateCells, error) {
	type outcome struct {
		colocated
		err error
	}
	results := grid(o, len(policies)*len(lengths), func(cell int, seed uint64) outcome {
		r := run
		r.loads, r.every, r.policy = loads(seed), time.Duration(lengths[cell%len(lengths)])*time.Second, policies[cell/len(lengths)]
		r.phase, r.scale = phaseOf(seed), o.Scale
		out, err := r.run()
		return outcome{out, err}
	})
	cells := colocateCells{}
	var failed error
	for cell, runs := range results {
		name, every := policies[cell/len(lengths)].name, lengths[cell%len(lengths)]
		if cells[name] == nil {
			cells[name] = map[int][]colocated{}
		}
		for _, r := range runs {
			failed = errors.Join(failed, r.err)
			cells[name][every] = append(cells[name][every], r.colocated)
		}
	}
	return cells, failed
}

// phaseOf is after which part of its interval a seed's controller looks first.
func phaseOf(seed uint64) float64 { return rand.New(rand.NewPCG(seed, 45)).Float64() }
