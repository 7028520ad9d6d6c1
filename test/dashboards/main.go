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

	"github.com/windlass-dev/windlass/test/cluster"
	"github.com/windlass-dev/windlass/test/faults/lab"
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

// folder is the variable that tells the process in the lab where to work.
const folder = "WINDLASS_DASHBOARDS_DIR"

// run enters the lab, or is there already.
func (o options) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if lab.Inside() {
		return o.inLab(ctx, os.Getenv(folder))
	}
	dir, err := os.MkdirTemp("", "windlass-dashboards-")
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintln(os.Stderr, "dashboards: logs are below", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	if err := lab.Build(filepath.Join(dir, "bin")); err != nil {
		return err
	}
	status, err := lab.Enter(ctx, folder+"="+dir)
	if err == nil && status != 0 {
		err = fmt.Errorf("the lab ended with status %d", status)
	}
	return err
}

// inLab puts everything together, calls, and runs the command.
func (o options) inLab(ctx context.Context, dir string) (err error) {
	l, err := open(ctx, dir)
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

const (
	// openWithin is how long it may take to put the lab together.
	openWithin = 2 * time.Minute
	// createQPS is how many pods a scheduler may create in a second: fewer than the burst wants.
	createQPS = 8
)

// open puts the lab together.
func open(ctx context.Context, dir string) (*lab.Lab, error) {
	crds, err := filepath.Abs("config/crd")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	inner := filepath.Join(dir, "lab")
	if err := os.Mkdir(inner, 0o755); err != nil {
		return nil, err
	}
	return lab.Open(ctx, lab.Config{
		Kubernetes: cluster.ProgramsFolder(), Programs: filepath.Join(dir, "bin"), CRDs: crds, Dir: inner,
		Schedulers: 2, Gateways: 2, Nodes: 3, LeaseTTL: 10 * time.Second, Drain: time.Second,
		SchedulerArguments: []string{fmt.Sprintf("--create-qps=%d", createQPS)},
	})
}

// watch starts Prometheus with the chart's rules, which have shorter times.
func (o options) watch(ctx context.Context, dir string, l *lab.Lab) (*prometheus.Server, error) {
	files, err := filepath.Glob("charts/windlass/rules/*.yaml")
	if err != nil || len(files) == 0 {
		return nil, errors.Join(err, errors.New("no rules in charts/windlass/rules: run this at the root of the module"))
	}
	c := prometheus.Config{
		Program: filepath.Join(o.programs, "prometheus"), Dir: filepath.Join(dir, "prometheus"), Listen: "127.0.0.1:9090",
		Job: "windlass", Every: every,
	}
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(path, []byte(rulefile.Shorten(string(text), o.factor, shortest)), 0o600); err != nil {
			return nil, err
		}
		c.Rules = append(c.Rules, path)
	}
	for component, members := range map[string][]*lab.Member{"scheduler": l.Schedulers, "gateway": l.Gateways} {
		for _, m := range members {
			c.Targets = append(c.Targets, prometheus.Target{
				Addr: l.OpsAddr(m), Labels: map[string]string{"namespace": "windlass", "pod": m.Name, "component": component},
			})
		}
	}
	return prometheus.Start(ctx, c)
}
