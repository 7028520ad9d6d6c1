// Command simulate runs simulations of many seeds and prints what happened as
// name=value lines. With -trace it replays one seed and prints all that happens
// in it.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/test/simulate/sim"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	first := flags.Uint64("seed", 1, "the first seed")
	seeds := flags.Uint64("seeds", 1, "how many seeds")
	hard := flags.Bool("hard", false, "more machines and many more faults")
	stop := flags.Bool("stop", false, "stop at the first seed that breaks a rule")
	trace := flags.Bool("trace", false, "print all that happens")
	workers := flags.Int("workers", runtime.GOMAXPROCS(0), "how many seeds are run at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := &batch{config: sim.Default, first: *first, count: *seeds, stop: *stop}
	if *hard {
		b.config, b.flags = sim.Hard, " -hard"
	}
	if *trace {
		b.trace = func(line string) { fmt.Fprintln(out, line) }
		*workers = 1
	}
	// Much is forgotten with each seed, and little is kept.
	debug.SetGCPercent(400)
	begun := time.Now()
	if err := b.run(*workers); err != nil {
		return err
	}
	b.print(out, time.Since(begun))
	if b.violations > 0 {
		return fmt.Errorf("%d of %d seeds broke a promise", b.violations, b.done)
	}
	return nil
}

// batch is the simulations of some seeds.
type batch struct {
	config       func(seed uint64) sim.Config
	flags        string // that lead to config
	first, count uint64
	stop         bool // at the first violation
	trace        sim.TraceSink

	next atomic.Uint64
	mu   sync.Mutex
	// What follows is guarded by mu.

	done       uint64
	counts     sim.Counts
	hashes     map[uint64]struct{}
	violations int
	rules      map[sim.Rule]int
	worst      []violation // the first ones
}

// violation is what to print of one seed.
type violation struct {
	seed uint64
	text string
}

// mostPrinted is how many violations are printed in full.
const mostPrinted = 10

func (b *batch) run(workers int) error {
	b.hashes, b.rules = make(map[uint64]struct{}), make(map[sim.Rule]int)
	errs := make(chan error, workers)
	for range workers {
		go func() { errs <- b.work() }()
	}
	var first error
	for range workers {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (b *batch) work() error {
	for i := b.next.Add(1) - 1; i < b.count; i = b.next.Add(1) - 1 {
		config := b.config(b.first + i)
		result, err := sim.Run(config, b.trace)
		if err != nil {
			return err
		}
		b.add(config, result)
	}
	return nil
}

func (b *batch) add(config sim.Config, r sim.Result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
	b.counts.Add(r.Counts)
	b.hashes[r.Hash] = struct{}{}
	if r.Violation == nil {
		return
	}
	b.violations++
	if b.stop {
		// Lower seeds, which others have begun, are still finished.
		b.next.Store(b.count)
	}
	b.rules[r.Violation.Rule]++
	if len(b.worst) < mostPrinted {
		replay := fmt.Sprintf("go run ./test/simulate -seed %d -trace%s", config.Seed, b.flags)
		b.worst = append(b.worst, violation{config.Seed, fmt.Sprintf("violation seed=%d %v\n  replay: %s", config.Seed, r.Violation, replay)})
	}
}

func (b *batch) print(out io.Writer, took time.Duration) {
	slices.SortFunc(b.worst, func(a, b violation) int { return cmp.Compare(a.seed, b.seed) })
	for _, w := range b.worst {
		fmt.Fprintln(out, w.text)
	}
	for _, rule := range sorted(b.rules) {
		fmt.Fprintf(out, "broken %d times: %s\n", b.rules[rule], rule)
	}
	t, faults := b.counts, 0
	for _, kind := range sorted(t.Faults) {
		fmt.Fprintf(out, "fault_%s=%d\n", kind, t.Faults[kind])
		faults += t.Faults[kind]
	}
	for _, line := range []struct {
		name  string
		value any
	}{
		{"seeds", b.done},
		{"invocations", t.Invocations},
		{"faults", faults},
		{"steps", t.Steps},
		{"executions", t.Executions},
		{"by_loan", t.ByLoan},
		{"given_up", t.GivenUp},
		{"without_schedulers", t.Alone},
		{"answered_ok", t.OK},
		{"answered_no", t.No},
		{"answered_maybe", t.Maybe},
		{"abandoned", t.Abandoned},
		{"duplicated", b.broke(sim.RuleStartsOnce)},
		{"lost", b.broke(sim.RuleInTime, sim.RuleAllAnswered, sim.RuleOKIsTrue)},
		{"wrong_no", b.broke(sim.RuleNoIsTrue, sim.RuleNoStaysTrue)},
		{"distinct_traces", len(b.hashes)},
		{"violations", b.violations},
		{"seconds", fmt.Sprintf("%.1f", took.Seconds())},
	} {
		fmt.Fprintf(out, "%s=%v\n", line.name, line.value)
	}
}

// broke is in how many seeds one of the rules was broken first.
func (b *batch) broke(rules ...sim.Rule) int {
	n := 0
	for _, rule := range rules {
		n += b.rules[rule]
	}
	return n
}

func sorted[K ~string](m map[K]int) []K {
	return slices.Sorted(maps.Keys(m))
}
