// Command dashboards runs the programs of a cluster in the lab of the fault tests, under
// load and a real Prometheus, and then a command that may ask that Prometheus what it saw.
// It makes the pictures of docs/dashboards.md: see hack/dashboards/pictures.sh.
//
// The command finds in its environment PROMETHEUS, a URL, BEGAN and ENDED, seconds of
// Unix time between which the load was, and FUNCTION, the NAMESPACE/NAME that had the burst.
// So that some minutes show what takes hours, times within rules are divided by -factor.
//
//	go run ./test/dashboards -prometheus FOLDER -- COMMAND [ARGUMENT...]
//
// It needs Linux, root, iptables and the programs of make cluster-binaries.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/test/lab"
	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
	"github.com/windlass-dev/windlass/test/monitoring/rulefile"
)

const (
	// every is how often Prometheus scrapes and evaluates. Metrics are collected once a second
	// at most: scrapes as often as that would see two seconds, or none, by turns.
	every = 2 * time.Second
	// Rules are evaluated as often as there are new samples. Windows stay much longer.
	shortest = every
)

// options are what the command line says.
type options struct {
	programs string
	factor   float64
	keep     bool
	command  []string
}

func main() {
	// Prometheus ends with the thread that started it, so that must be one that stays.
	runtime.LockOSThread()
	var o options
	flag.StringVar(&o.programs, "prometheus", "", "`folder` of prometheus, as test/monitoring/prometheus.sh prints it")
	flag.Float64Var(&o.factor, "factor", 15, "`number` that times of rules are divided by")
	flag.BoolVar(&o.keep, "keep", false, "keep logs and say where")
	flag.Parse()
	o.command = flag.Args()
	if o.programs == "" || len(o.command) == 0 || o.factor < 1 {
		fmt.Fprintln(os.Stderr, "usage: dashboards -prometheus FOLDER [-factor 1 or more] -- COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

// run enters the lab, or is there already.
func (o options) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if dir, inside := lab.Inside(); inside {
		return o.inLab(ctx, dir)
	}
	dir, remove, err := lab.Workspace("dashboards", o.keep)
	if err != nil {
		return err
	}
	defer remove()
	status, err := lab.Enter(ctx, dir)
	if err == nil && status != 0 {
		err = fmt.Errorf("the lab ended with status %d", status)
	}
	return err
}

// createQPS is how many pods a scheduler may create in a second: fewer than the burst wants.
const createQPS = 8

// inLab puts everything together, calls, and runs the command.
func (o options) inLab(ctx context.Context, dir string) (err error) {
	l, err := lab.Open(ctx, lab.Config{
		Dir: filepath.Join(dir, "lab"), Schedulers: 2, Gateways: 2, Nodes: 3, LeaseTTL: 10 * time.Second, Drain: time.Second,
		SchedulerArguments: []string{fmt.Sprintf("--create-qps=%d", createQPS)},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	server, err := o.watch(ctx, dir, l)
	if err != nil {
		return err
	}
	defer server.Stop()
	began, err := load(ctx, l)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, o.command[0], o.command[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), "PROMETHEUS="+server.URL(), "FUNCTION="+bursting,
		fmt.Sprintf("BEGAN=%d", began.Unix()), fmt.Sprintf("ENDED=%d", time.Now().Unix()))
	return command.Run()
}

// watch starts Prometheus with the chart's rules, which have shorter times.
func (o options) watch(ctx context.Context, dir string, l *lab.Lab) (*prometheus.Server, error) {
	rules, err := rulefile.ShortenInto(dir, o.factor, shortest)
	if err != nil {
		return nil, err
	}
	c := prometheus.Config{
		Program: filepath.Join(o.programs, "prometheus"), Dir: filepath.Join(dir, "prometheus"), Listen: "127.0.0.1:9090",
		Job: "windlass", Every: every, Rules: rules, Targets: prometheus.LabTargets(l),
	}
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return nil, err
	}
	return prometheus.Start(ctx, c)
}
