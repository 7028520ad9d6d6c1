// Command density measures how much memory idle functions and idle instances take in a gateway and
// in a scheduler.
//
// It runs both, each in a process of its own, as a cluster does: they speak TCP on 127.0.0.1, with
// TLS and certificates. Etcd and Kubernetes are left out: one scheduler owns all slots, functions
// come from a folder, and the scheduler orders its instances from this process. The instances'
// agents are those of a cluster, too, but all of them are in this process, with functions that
// answer at once. Each has one stream to the scheduler and one connection to the gateway, to which
// it has lent its one place after one call.
//
// It prints lines name=value. Bytes are those of one thing: the difference that many have made,
// divided by their number. There are two kinds: _bytes are the objects on the heap after a
// collection, and the stacks; _resident is what the kernel counts as resident, with what the
// heap wastes. Neither has the buffers of sockets, which are the kernel's.
//
//   - density_function_bytes: a function that is registered and was never called, in scheduler and
//     gateway together. The goal is 4096 or less. _scheduler and _gateway are its parts.
//   - density_agent_bytes: an idle instance that has lent its place, in scheduler and gateway
//     together, with what the gateway and the scheduler keep of a function that was called. The goal is 40960
//     or less. _host is the agent's own part, in this process, and not in the sum.
//   - density_agent_goroutines_scheduler, density_agent_goroutines_gateway: goroutines of such an
//     instance. Their stacks are the larger half of the bytes.
//   - density_quiet_agent_bytes: the same once the instances have gone quiet and taken their places
//     back, while their connections to the gateway are still open.
//   - density_parted_agent_bytes: the same once they have closed those connections.
//   - density_cpu_percent_scheduler, density_cpu_percent_gateway: CPU time of all idle instances, in
//     percent of a core; also for _quiet and _parted. There is no goal.
//   - density_loans: places that are lent, by the scheduler's own metric. Fewer than the agents are
//     an error.
//
// Each of the called functions has ten instances; with -instances=1, which is the dearest case, each
// has one, and what is kept of its function counts as the instance's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"time"
)

// options are the command's flags.
type options struct {
	functions, agents, instances int
	// quietAfter is how long an instance is idle before it takes its place back.
	quietAfter time.Duration
	secure     bool
	// lentOnly leaves out instances that are quiet or have parted.
	lentOnly bool
	profiles string
}

func main() {
	var o options
	var r roleFlags
	flag.IntVar(&o.functions, "functions", 10_000, "functions that are registered")
	flag.IntVar(&o.agents, "agents", 5_000, "instances")
	flag.IntVar(&o.instances, "instances", 10, "instances of each function that is called")
	flag.DurationVar(&o.quietAfter, "quiet-after", 3*time.Minute, "how long instances are idle before they go quiet; the first must not while the last start")
	flag.BoolVar(&o.secure, "tls", true, "secure connections with TLS as in a cluster")
	flag.BoolVar(&o.lentOnly, "lent-only", false, "end once instances that lend their places are measured, and leave out those that have gone quiet")
	flag.StringVar(&o.profiles, "profiles", "", "`folder` for profiles of the heap and of goroutines of scheduler and gateway at each stage; none if it is empty")
	r.add(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if r.role != "" {
		err = runRole(ctx, os.Stdin, os.Stdout, r)
	} else {
		err = run(ctx, os.Stdout, o)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "density:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	switch {
	case o.functions < 1 || o.agents < 1 || o.instances < 1:
		return errors.New("-functions, -agents and -instances must be at least 1")
	case o.agents%o.instances != 0:
		return fmt.Errorf("-agents must be a multiple of -instances, which is %d", o.instances)
	case o.called() > o.functions:
		return fmt.Errorf("%d agents need %d functions: raise -functions or -instances", o.agents, o.called())
	}
	return nil
}

// called is how many functions are called.
func (o options) called() int { return o.agents / o.instances }

func run(ctx context.Context, out io.Writer, o options) (err error) {
	if err := o.validate(); err != nil {
		return err
	}
	if err := raiseFileLimit(o.agents); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "windlass-density-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, broke := context.WithCancelCause(ctx)
	defer broke(nil)
	// In a cluster each agent has a process. Here they would all be late for their pings while
	// one collection after the other goes through the memory of thousands.
	debug.SetGCPercent(400)
	s, err := newSite(o, dir, broke)
	if err != nil {
		return err
	}
	defer s.stop()
	err = measureAll(ctx, out, s)
	if why := context.Cause(ctx); why != nil {
		return why
	}
	return err
}
