// Command scaleout measures on a real cluster what provisioning promises: that more
// nodes carry more calls, that a burst buys few pods too many, and that a spare
// instance starts sooner than a pod.
//
//	go run ./test/scaleout -bench scaleout|burst|warmpool|warm --kubeconfig K [--gateway URL]
//
// It prints lines name=value, times in milliseconds unless their names say else.
// Functions wait rather than compute, so that kubelets may share one machine.
//
//   - scaleout: a function that waits for half a second, on 1, 2 and 4 nodes that each
//     hold exactly as many of its instances, with twice as many clients as instances
//     that call again as soon as they are answered. throughput_N is calls per second
//     once all instances are there; the ratio of the last to the first, by the ratio of
//     nodes, is to be 0.925 or more: 3.7 for 4 nodes to 1.
//   - burst: a function that takes three seconds to start and 50 ms to answer. It was
//     called before, so that both are known, and has no instance. Calls come at random
//     at a constant rate. Created pods by those needed, which are the rate times the
//     duration unless -needed says more, are to be 1.5 or less; more than five times
//     as many are not created, whatever the decider wants. wait_p99 is of all calls,
//     those of the first seconds included. -decider compares deciders.
//   - warmpool: the first call of a python3.13 function with code in its manifest, once
//     by a pod and once by a spare instance, in turns. The start is the time that the
//     call waited for its instance; its median by a spare one is to be 150 ms or less.
//   - warm: a function that does nothing, with eight instances of concurrency 1, called by 32
//     clients. cpu_us_per_warm_call_ROLE is the CPU time of all containers of gateways,
//     schedulers, agents and functions by answered calls, as kubelets count it; those of
//     gateways, schedulers and agents together are to be 300 µs or less.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/test/tenant"
)

// options are the command's flags.
type options struct {
	bench, kubeconfig, gateway, release, image string

	nodes     string
	instances int
	agentCPU  int64
	length    time.Duration

	rate   float64
	needed int
	// decider is the function's; empty for the schedulers' own.
	decider string
	seed    uint64

	runs int
}

func main() {
	var o options
	flag.StringVar(&o.bench, "bench", "scaleout", "scaleout, burst, warmpool or warm")
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "path of an administrator's kubeconfig")
	flag.StringVar(&o.gateway, "gateway", "", "URL of the gateways; the Service's address by default")
	flag.StringVar(&o.release, "release-namespace", "windlass", "namespace of Windlass")
	flag.StringVar(&o.image, "image", "windlass.test/test-functions:dev", "image of the functions that wait")
	flag.StringVar(&o.nodes, "nodes", "1,2,4", "scaleout: how many nodes, in this order")
	flag.IntVar(&o.instances, "instances", 8, "scaleout: instances that each node holds")
	flag.Int64Var(&o.agentCPU, "agent-cpu", 10, "scaleout: what an agent requests, in thousandths of a core")
	flag.DurationVar(&o.length, "length", 30*time.Second, "scaleout, burst, warm: how long calls are counted")
	flag.Float64Var(&o.rate, "rate", 150, "burst: calls per second")
	flag.IntVar(&o.needed, "needed", 0, "burst: pods that are needed; rate times duration by default")
	flag.StringVar(&o.decider, "decider", "", "burst: decider of the function; the schedulers' own by default")
	flag.Uint64Var(&o.seed, "seed", 1, "burst: seed of the times between calls")
	flag.IntVar(&o.runs, "runs", 20, "warmpool: starts of each kind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scaleout:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	bench, known := map[string]func(context.Context, cluster, options, io.Writer) error{
		"scaleout": measureScaleOut, "burst": measureBurst, "warmpool": measureWarmPool, "warm": measureWarm,
	}[o.bench]
	if !known {
		return fmt.Errorf("-bench %q is none of scaleout, burst, warmpool and warm", o.bench)
	}
	if o.instances < 1 || o.runs < 1 || o.rate <= 0 || o.length <= 0 {
		return errors.New("-instances, -runs, -rate and -length must be positive")
	}
	own, err := tenant.New(ctx, o.kubeconfig, o.release, "scaleout-")
	if err != nil {
		return err
	}
	defer func() {
		// Also after an interrupt.
		cleaning, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		err = errors.Join(err, own.Remove(cleaning))
	}()
	w := cluster{Tenant: own, gateway: strings.TrimSuffix(o.gateway, "/")}
	if w.gateway == "" {
		if w.gateway, err = own.Gateway(ctx); err != nil {
			return err
		}
	}
	return bench(ctx, w, o, out)
}

// counts reads a list of numbers of nodes.
func counts(list string) ([]int, error) {
	var all []int
	for _, text := range strings.Split(list, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-nodes %q: write numbers of nodes, such as 1,2,4", list)
		}
		all = append(all, n)
	}
	return all, nil
}
