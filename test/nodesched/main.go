// Command nodesched measures what the order of calls on a node does to them, with real processes:
// it replays seeded traces of calls, as an open loop, against local Windlasses that differ in
// nothing but their node scheduling, and prints slowdowns, turnarounds, and ratios of policies.
//
// Functions compute on one core; Windlass, its agents and the clients run on another. It needs
// root and two cores, and refuses a machine that does other work. Among the policies is FILTER of
// SFS as published, with the real-time class, which is the harness's own.
//
// The traces colocate and memcached are others: a service whose load changes by steps, beside batch
// processes, each in a control group of its own, on all cores and without a platform.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "nodesched:", err)
		os.Exit(1)
	}
}

// plan is what to measure.
type plan struct {
	trace    string
	policies []policy
	seeds    int
	first    uint64
	load     float64
	length   time.Duration
	each     bool // print each call
	// only are the attacks that are made, by commas, beside honest tenants, or the case of the trace cost; all if empty.
	only string
	// profile is how the names of the files begin that profiles are written to; none if empty.
	profile string
	// data is the folder of records.
	data string
}

// overloaded is the load of the trace overload.
const overloaded = 1.5

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("nodesched", flag.ContinueOnError)
	name := flags.String("trace", "azure", "two, azure, zuk, short (what asks cost) or hybrid (needs -data); calm: what a node agent costs; faults: let the node agent fail instead; hang: stop its process; attacks: tenants that lie to it; chain: calls that wait for calls; late: three nodes, one overloaded, with and without late binding; fewer: three nodes that order calls and four that do not; overload: more calls than the core can run, for as long as -for says; colocate or memcached: a service beside batch")
	chosen := flags.String("policies", "", "policies to compare, by commas (default: those that the trace's goals are about)")
	seeds := flags.Int("seeds", 5, "how many seeds")
	first := flags.Uint64("seed", 1001, "the first seed")
	load := flags.Float64("load", 0, "load of the functions' core; zuk: the intensity divided by 100 (default: 0.95, zuk: 0.6, as its goals say)")
	length := flags.Duration("for", 8*time.Second, "how long calls come")
	data := flags.String("data", "", "the folder with hybrid_azure_2min_12442.csv; for the trace hybrid")
	each := flags.Bool("calls", false, "print each call, too")
	only := flags.String("only", "", "the attacks to make beside the honest tenants, by commas, or the one case of the trace cost; all if empty")
	profile := flags.String("profile", "", "write profiles of the node agent into files whose names begin so; for the trace cost")
	busy := flags.Bool("busy", false, "measure although the machine does other work")
	serving := flags.String("serve", "", "be the Windlass of this policy, until the standard input ends")
	dir := flags.String("dir", "", "the folder with its programs, with -serve; the one to remove, with -remove")
	filtering := flags.String("filter", "", "be the filter that listens at this socket, until the standard input ends")
	burning := flags.Bool("burn", false, "be a function")
	answering := flags.Bool("answer", false, "be a service, until the standard input ends")
	placing := flags.String("place", "", "be an agent that puts its instance on a node, with the folder of the programs")
	node := flags.String("node", "", "be the node agent of the node of this folder, with the first of -policies, until the standard input ends")
	group := flags.String("group", "", "the control group of the node, with -node")
	working := flags.Bool("work", false, "be a pod's process, which computes what it reads from the standard input")
	removing := flags.String("remove", "", "remove the control group of this name and the folder of -dir, once the standard input ends")
	toiling := flags.String("toil", "", "be a batch process that counts in this file")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *working || *answering || *filtering+*node+*serving+*removing != "" {
		ignoreInterrupts()
	}
	switch {
	case *burning:
		return burn()
	case *removing != "":
		return removeAfter(*removing, *dir, os.Stdin)
	case *working:
		return serveWork(os.Stdin, out)
	case *filtering != "":
		return serveFilter(*filtering, os.Stdin, out)
	case *answering:
		return serveRequests(out, os.Stdin)
	case *toiling != "":
		return toil(*toiling)
	case *placing != "":
		return place(*placing)
	case *node != "":
		p, err := policyByName(*chosen)
		if err != nil {
			return err
		}
		return serveNode(*node, *group, p, os.Stdin, out)
	case *serving != "":
		p, err := policyByName(*serving)
		if err != nil {
			return err
		}
		return serve(p, *dir, flags.Args(), os.Stdin, out)
	}
	if *name == "colocate" || *name == "memcached" {
		return startColocation(out, flags, *name, *seeds, *first, *length, *busy)
	}
	if *load == 0 {
		*load = defaultLoad(*name)
	}
	p := plan{trace: *name, seeds: *seeds, first: *first, load: *load, length: *length, each: *each, data: *data, only: *only, profile: *profile}
	if traces := nodeTraces[*name]; traces.measure != nil {
		return p.startOnNodes(out, traces, *chosen, *busy)
	}
	special := map[string]func(self, dir string) error{
		"faults":   func(self, dir string) error { return measureFaults(out, self, dir, max(faultLoad, *load)) },
		"calm":     func(self, dir string) error { return measureCalm(out, self, dir) },
		"chain":    func(self, dir string) error { return measureChain(out, self, dir) },
		"attacks":  func(self, dir string) error { return measureAttacks(out, self, dir, p) },
		"cost":     func(self, dir string) error { return measureCost(out, self, dir, p) },
		"hang":     func(self, dir string) error { return measureHang(out, self, dir) },
		"overload": func(self, dir string) error { return measureOverload(out, self, dir, overloaded, *length) },
	}[*name]
	if special != nil {
		err := checkMachine(*busy)
		if err == nil && *name != "calm" { // which has all cores, to be calm
			err = leaveCore()
		}
		if err != nil {
			return err
		}
		if *name == "attacks" || *name == "cost" || *name == "hang" {
			return withFolder(special)
		}
		return withPrograms(special)
	}
	if *chosen == "" {
		*chosen = map[string]string{"azure": "off,sfs,fifo-sfs,serpt", "two": "off,sfs,fifo-sfs,serpt", "zuk": "off,fifo,sept,fair-choice,serpt", "hybrid": "off,fifo,sept,serpt", "short": "off,serpt"}[*name]
	}
	for _, name := range strings.Split(*chosen, ",") {
		policy, err := policyByName(name)
		if err != nil {
			return err
		}
		p.policies = append(p.policies, policy)
	}
	if _, err := p.calls(1); err != nil {
		return err
	}
	if err := errors.Join(checkMachine(*busy), leaveCore()); err != nil {
		return err
	}
	return withPrograms(func(self, dir string) error { return p.measure(out, self, dir) })
}

// defaultLoad is the load of a trace if nothing else is wanted. The goals of zuk are for the paper's intensity of 60.
func defaultLoad(trace string) float64 {
	if trace == "zuk" {
		return 0.6
	}
	return 0.95
}

// checkMachine says what keeps this machine from measuring.
func checkMachine(busy bool) error {
	switch {
	case os.Geteuid() != 0:
		return errors.New("it needs root, for control groups and the real-time class: use sudo")
	case runtime.NumCPU() <= functionCore:
		return fmt.Errorf("it needs %d cores", functionCore+1)
	}
	before, err := readMachine()
	if err != nil {
		return err
	}
	const look = 2 * time.Second
	time.Sleep(look)
	after, err := readMachine()
	if err != nil {
		return err
	}
	if used := (after.busy - before.busy).Seconds() / look.Seconds(); used > 0.15 && !busy {
		return fmt.Errorf("other programs use %.0f %% of a core: stop them, or measure nevertheless with -busy", used*100)
	}
	return nil
}

// leaveCore makes all that is started run on one core beside that of the functions, but for the functions. With one core a
// Windlass hands out one ticket, for the one core of the functions.
func leaveCore() error {
	one := colocate.Cores{First: platformCore, N: 1}
	// The second time is for threads that began meanwhile.
	return errors.Join(moveTo(os.Getpid(), one), moveTo(os.Getpid(), one))
}

// withPrograms runs do with this program and a folder that has the agent's, and removes it.
func withPrograms(do func(self, dir string) error) error {
	return withFolder(func(self, dir string) error {
		agent := filepath.Join(dir, "podagent")
		if built, err := exec.Command("go", "build", "-o", agent, "github.com/windlass-dev/windlass/cmd/podagent").CombinedOutput(); err != nil {
			return fmt.Errorf("building the agent: %w: %s", err, built)
		}
		return do(self, dir)
	})
}

// withFolder runs do with this program and a folder, and removes it, with the groups that do has left.
func withFolder(do func(self, dir string) error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "windlass-nodesched-")
	if err != nil {
		return err
	}
	remove, err := startRemover(self, temp)
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return errors.Join(do(self, temp), remove())
}

// calls makes the trace of a seed.
func (p plan) calls(seed uint64) (trace, error) {
	if p.trace == "hybrid" {
		return hybrid(p.data, seed)
	}
	return newTrace(p.trace, seed, p.load, p.length)
}

// measure runs all policies in turn for each seed.
func (p plan) measure(out io.Writer, self, dir string) error {
	all := map[string][]outcome{}
	for i := range p.seeds {
		seed := p.first + uint64(i)
		t, err := p.calls(seed)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s_seed=%d calls=%d work=%.2fs\n", p.trace, seed, len(t.calls), t.work().Seconds())
		var classes []string
		for _, c := range t.calls {
			if !slices.Contains(classes, c.class) {
				classes = append(classes, c.class)
			}
		}
		slices.Sort(classes)
		for _, policy := range p.policies {
			o, err := measureOne(self, dir, policy, t)
			if err != nil {
				return fmt.Errorf("policy %s: %w", policy.name, err)
			}
			if p.each {
				o.printEach(out, policy.name)
			}
			o.print(out, fmt.Sprintf("%s_%d_%s", p.trace, seed, policy.name), classes)
			all[policy.name] = append(all[policy.name], o)
		}
	}
	judge(out, p.trace, all)
	if p.trace == "short" {
		judgeAsks(out, all)
	}
	judgeModel(out, p.trace, p.policies, all)
	judgeSwitches(out, p.trace, p.policies, all)
	return nil
}

// measureOne replays a trace under a policy.
func measureOne(self, dir string, p policy, t trace) (o outcome, err error) {
	on, err := measurePlatform(self, dir, p, t)
	if err != nil {
		return o, err
	}
	predicted, err := predict(p, t, on)
	if err != nil {
		return o, err
	}
	err = withServer(self, dir, p, t, func(s *server) error {
		o, err = s.measure(t)
		return err
	})
	o.platform = on
	for i := range o.results {
		o.results[i].predicted = predicted[i]
	}
	return o, err
}

// withServer runs do with a Windlass of its own, and ends it.
func withServer(self, dir string, p policy, t trace, do func(*server) error) (err error) {
	if p.filter {
		f, err := startFilter(self, filterSocket(dir))
		if err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, f.stop())
			_ = os.Remove(filterSocket(dir))
		}()
	}
	s, err := startServer(self, dir, p, t)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.stop(), os.RemoveAll(filepath.Join(dir, "data")))
	}()
	if err := s.hasOneTicket(p); err != nil {
		return err
	}
	time.Sleep(time.Second) // what starting leaves behind
	return do(s)
}

// hasOneTicket returns an error if a policy with an order has not one ticket for the functions' core.
func (s *server) hasOneTicket(p policy) error {
	text, err := s.metrics()
	if tickets := sumOf(text, "windlass_node_cores", ""); err == nil && p.order != "" && tickets != 1 {
		return fmt.Errorf("the Windlass of policy %s has %.0f tickets for one core", p.name, tickets)
	}
	return err
}

// measure replays a trace, and counts what that costs.
func (s *server) measure(t trace) (o outcome, err error) {
	cpu, err := s.cpu()
	if err != nil {
		return o, err
	}
	before, err := readMachine()
	if err != nil {
		return o, err
	}
	began := time.Now()
	o.results = s.replay(t)
	o.took = time.Since(began)
	after, err := s.cpu()
	if err != nil {
		return o, err
	}
	now, err := readMachine()
	o.cpu, o.switches, o.core = after-cpu, now.switches-before.switches, now.functions-before.functions
	if n, first := o.failed(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d calls failed; the first: %w", n, first))
	}
	time.Sleep(time.Second) // agents report by pings
	text, readErr := s.metrics()
	o.metrics = text
	return o, errors.Join(err, readErr)
}
