package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// A colocation is measured without a platform: a service in a process of its own that answers
// requests whose rate changes by steps, beside batch processes, each in a control group of its own.
// Who decides about them is the harness, with the product's controller and groups.

// side is a way to treat batch beside the service.
type side struct {
	name string
	// batch says that there is any, low that it is in the low band.
	batch, low bool
	// control are the controller's params; nil for no controller.
	control *colocate.Params
	look    time.Duration
}

// reportLook is how often the report's controller looks; its text does not say.
const reportLook = 500 * time.Millisecond

func sides() []side {
	cores := runtime.NumCPU()
	twoState, ours, believes := colocate.TwoState(cores), colocate.DefaultParams(cores), colocate.DefaultParams(cores)
	believes.JudgeFor = 0
	return []side{
		{name: "alone"},
		{name: "off", batch: true},
		{name: "two-state", batch: true, control: &twoState, look: reportLook},
		{name: "bands", batch: true, low: true},
		{name: "believes", batch: true, low: true, control: &believes, look: 100 * time.Millisecond}, // ours without doubts
		{name: "ours", batch: true, low: true, control: &ours, look: 100 * time.Millisecond},
	}
}

// The goals: the service's p95 beside batch, its violations, and batch's work beside two-state's.
const (
	mostP95, mostViolations, leastWork = 1.2, 1, 1.15
	// objectiveFactor makes the objective out of the p95 alone at the highest rates: assumed.
	objectiveFactor = 2
)

// measureColocation runs all sides in turn for each seed, with the same requests.
func measureColocation(out io.Writer, self, dir, kind string, seeds int, first uint64, length time.Duration) error {
	if runtime.NumCPU() < 4 {
		fmt.Fprintf(out, "%s_cores=%d: the two-state controller has no large block on fewer than 4, which is better for the ratio of work\n", kind, runtime.NumCPU())
	}
	all := map[string][]shared{}
	for i := range seeds {
		seed := first + uint64(i)
		var objective time.Duration
		for _, s := range sides() {
			o, err := measureSide(self, dir, kind, s, seed, length)
			if err != nil {
				return fmt.Errorf("%s beside the service: %w", s.name, err)
			}
			if s.name == "alone" {
				objective = seconds(objectiveFactor * o.highest())
				fmt.Fprintf(out, "%s_seed=%d requests=%d objective_ms=%.2f\n", kind, seed, len(o.answers), objective.Seconds()*1e3)
			}
			o.objective = objective
			o.print(out, fmt.Sprintf("%s_%d_%s", kind, seed, s.name))
			all[s.name] = append(all[s.name], o)
		}
	}
	judgeColocation(out, kind, all)
	return nil
}

// measureSide starts the service and batch, and makes the requests.
func measureSide(self, dir, kind string, s side, seed uint64, length time.Duration) (o shared, err error) {
	tree := cgroups.Detect(cgroups.Options{Create: true})
	if !tree.Bands() {
		return o, fmt.Errorf("no low band: %s", tree)
	}
	journal, err := cgroups.OpenJournal(filepath.Join(dir, "journal"))
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	n := &neighbours{self: self, dir: dir, side: s, tree: tree, journal: journal, kind: kind}
	if err := n.begin(); err != nil {
		return o, errors.Join(err, n.stop())
	}
	stop, stopped := make(chan struct{}), make(chan error, 1)
	before := n.work()
	waited, err := waitedFor(n.service.cmd.Process.Pid)
	if err != nil {
		return o, errors.Join(err, n.stop())
	}
	back, err := goFirst()
	if err != nil {
		return o, errors.Join(err, back(), n.stop())
	}
	go func() { stopped <- n.control(stop) }()
	began := time.Now()
	o.answers, o.failed = askService(n.address, kind, seed, newSteps(seed, length))
	o.took = time.Since(began)
	unfirst := back()
	after, err := waitedFor(n.service.cmd.Process.Pid)
	o.waited = after - waited
	close(stop)
	err = errors.Join(err, unfirst, <-stopped)
	o.work = n.work() - before
	o.frozen, o.moves = n.frozen, n.moves
	if n.core != nil {
		o.vain = n.core.Vain()
	}
	return o, errors.Join(err, n.stop())
}

// judgeColocation prints ratios of medians over the seeds, with their bars.
func judgeColocation(out io.Writer, kind string, all map[string][]shared) {
	p95 := func(o shared) float64 { return percentile(o.latencies(), 95) }
	violations := func(o shared) float64 { return o.violations() }
	work := func(o shared) float64 { return float64(o.work) / o.took.Seconds() }
	median := func(name string, of func(shared) float64) float64 {
		var figures []float64
		for _, o := range all[name] {
			figures = append(figures, of(o))
		}
		return percentile(figures, 50)
	}
	verdict := func(met bool) string {
		if met {
			return "met"
		}
		return "MISSED"
	}
	for _, name := range []string{"off", "two-state", "bands"} {
		fmt.Fprintf(out, "%s_p95_%s_over_alone=%.2f\n", kind, name, median(name, p95)/median("alone", p95))
	}
	ratio := median("ours", p95) / median("alone", p95)
	fmt.Fprintf(out, "%s_p95_ours_over_alone=%.2f goal<=%g %s\n", kind, ratio, mostP95, verdict(ratio <= mostP95))
	share := median("ours", violations)
	fmt.Fprintf(out, "%s_violations_percent_ours=%.2f goal<=%d %s\n", kind, share, mostViolations, verdict(share <= mostViolations))
	done := median("ours", work) / median("two-state", work)
	fmt.Fprintf(out, "%s_work_ours_over_two_state=%.2f goal>=%g %s\n", kind, done, leastWork, verdict(done >= leastWork))
	fmt.Fprintf(out, "%s_work_ours_over_off=%.2f\n", kind, median("ours", work)/median("off", work))
}

// colocationLength is how long a side is measured unless somebody says otherwise: 100 steps.
const colocationLength = 100 * time.Second

// startColocation measures a colocation: one seed of 100 steps, unless flags say otherwise.
func startColocation(out io.Writer, flags *flag.FlagSet, kind string, seeds int, first uint64, length time.Duration, busy bool) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	if !given["seeds"] {
		seeds = 1
	}
	if !given["for"] {
		length = colocationLength
	}
	if err := checkMachine(busy); err != nil {
		return err
	}
	return withFolder(func(self, dir string) error { return measureColocation(out, self, dir, kind, seeds, first, length) })
}

// clientPriority is that of the harness's threads in the real-time class while they make requests.
const clientPriority = 1

// goFirst lets the harness's threads compute before what it measures, as if clients were on another
// machine, until back is called. What it starts meanwhile would go first as well. A high weight
// would not do: it counts only within a group, and the groups of what is measured share another.
func goFirst() (back func() error, err error) {
	pid := os.Getpid()
	return func() error { return setProcess(pid, unix.SCHED_NORMAL, 0) }, setProcess(pid, unix.SCHED_FIFO, clientPriority)
}
