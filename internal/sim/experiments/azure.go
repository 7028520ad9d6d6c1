package experiments

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/internal/sim/cluster"
	"github.com/windlass-dev/windlass/internal/workload"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

var azure = Experiment{
	Name:      "azure",
	Summary:   "recorded traces: costs and benefits of deciders and of ways to keep instances",
	NeedsData: true,
	Full:      Size{Seeds: 5, Scale: 1},
	Quick:     Size{Seeds: 2, Scale: 1, Sparse: true},
	run:       runAzure,
}

// sample is a recorded trace.
type sample struct {
	name string
	fsys fs.FS
}

// dayDir and hoursDir are where the samples are within the data.
const (
	dayDir   = "azure2019_day1"
	hoursDir = "azure2019_100fn_8h"
)

// samples finds the traces in the data: its own, if it is a trace, or else those of a
// day and of eight hours.
func samples(data fs.FS, sparse bool) ([]sample, error) {
	if data == nil {
		return nil, errors.New("experiments: azure replays recorded traces; name a folder with them")
	}
	if exists(data, workload.AzureInvocations) {
		return []sample{{"trace", data}}, nil
	}
	functions := []int{50, 100, 200, 500}
	if sparse {
		functions = functions[:1]
	}
	var found []sample
	for _, n := range functions {
		prefix := dayDir + "/" + strconv.Itoa(n)
		if exists(data, prefix+"_inv.csv") {
			found = append(found, sample{"day" + strconv.Itoa(n), renamed{data, map[string]string{
				workload.AzureInvocations: prefix + "_inv.csv",
				workload.AzureDurations:   prefix + "_run.csv",
				workload.AzureMemory:      prefix + "_mem.csv",
			}}})
		}
	}
	if !sparse && exists(data, hoursDir+"/"+workload.AzureInvocations) {
		sub, err := fs.Sub(data, hoursDir)
		if err != nil {
			return nil, err
		}
		found = append(found, sample{"hours8", sub})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("experiments: the data has neither %s and %s, nor %s/50_inv.csv; name another folder",
			workload.AzureInvocations, workload.AzureDurations, dayDir)
	}
	return found, nil
}

func exists(fsys fs.FS, name string) bool {
	_, err := fs.Stat(fsys, name)
	return err == nil
}

// renamed is a file system of some files under other names.
type renamed struct {
	fs.FS
	names map[string]string
}

func (r renamed) Open(name string) (fs.File, error) {
	actual, ok := r.names[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return r.FS.Open(actual)
}

// keepAlive is a way to keep instances of functions that are idle.
type keepAlive struct {
	name  string
	apply func(*cluster.Function)
}

var keepAlives = []keepAlive{
	{"histogram", func(f *cluster.Function) { f.Learns = true }},
	{"paper", func(*cluster.Function) {}},
	{"10 min", func(f *cluster.Function) { f.KeepLast = 10 * time.Minute }},
}

// combination is a decider with a way to keep instances.
type combination struct {
	decider string
	keep    keepAlive
}

func (c combination) name() string { return c.decider + ", " + c.keep.name }

// combinations are all of them, ours first.
func combinations() []combination {
	var all []combination
	for _, d := range deciderNames {
		for _, k := range keepAlives {
			all = append(all, combination{d, k})
		}
	}
	return all
}

// defaultMemory is that of functions of a trace without memory.
const defaultMemory = 128 << 20

// azureStart is how long an instance takes to start.
func azureStart() cluster.Distribution { return cluster.LogNormal(time.Second, 3*time.Second) }

// azureRun is the result of a trace with a combination.
type azureRun struct {
	calls, cold, created    float64
	p50, p99, p999          float64 // of waits, in milliseconds
	instanceTime, gigabytes float64 // hours, and GB-hours
	slow50, slow99          float64 // slowdowns
}

// azureConfig is a simulation of a trace on nodes without bounds.
func azureConfig(o Options, trace workload.Trace, c combination, seed uint64) (config cluster.Config, memory []int64) {
	numbers := map[string]int{}
	config = cluster.Config{Seed: seed, Length: trace.Length, Decider: decider(c.decider), Gateways: o.Gateways, ReportEvery: o.reportEvery}
	ids := map[string]bool{}
	for _, a := range trace.Arrivals {
		ids[a.Function] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		bytes := int64(defaultMemory)
		if m, ok := trace.Memory[id]; ok {
			bytes = m
		}
		f := cluster.Function{Start: azureStart(), Requests: placement.Amount{MilliCPU: 100, Memory: bytes, Pods: 1}}
		c.keep.apply(&f)
		numbers[id] = len(config.Functions)
		config.Functions = append(config.Functions, f)
		memory = append(memory, bytes)
	}
	config.Loads = []cluster.Load{cluster.Trace{Trace: trace, Functions: numbers}}
	return config, memory
}

func runTrace(o Options, trace workload.Trace, c combination, seed uint64) azureRun {
	config, memory := azureConfig(o, trace, c, seed)
	r := mustRun(config)
	out := azureRun{
		calls: float64(r.Total.Calls), cold: float64(r.Total.Cold), created: float64(r.Total.Created),
		p50: milliseconds(r.Total.Wait.Quantile(.5)), p99: milliseconds(r.Total.Wait.Quantile(.99)),
		p999:         milliseconds(r.Total.Wait.Quantile(.999)),
		instanceTime: r.Total.InstanceTime().Hours(),
		slow50:       r.Slowdown.Quantile(.5), slow99: r.Slowdown.Quantile(.99),
	}
	for i, f := range r.Functions {
		out.gigabytes += f.InstanceTime().Hours() * float64(memory[i]) / (1 << 30)
	}
	return out
}

// loadSample makes a trace of a sample, or of the beginning of it.
func loadSample(s sample, o Options, seed uint64) (workload.Trace, error) {
	trace, err := workload.LoadAzure(s.fsys, workload.AzureOptions{Seed: seed})
	if err == nil && o.Scale < 1 {
		trace, err = workload.Shape{Length: o.length(trace.Length)}.Apply(trace)
	}
	if err == nil && len(trace.Arrivals) == 0 {
		err = errors.New("it has no call")
	}
	if err != nil {
		return trace, fmt.Errorf("experiments: sample %s: %w", s.name, err)
	}
	return trace, nil
}
