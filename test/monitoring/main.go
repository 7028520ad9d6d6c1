// Command monitoring proves Windlass's dashboards and alerts with a real
// Prometheus.
//
// First it replays the load of windlass demo on this machine and asks everything
// that dashboards, recording rules and runbooks ask. Then it puts the lab of package
// test/lab together, and beside it a windlass up that orders calls, for the node agent
// that the lab lacks. It brings each alert about by its real condition, takes the
// condition away, and waits for the alert to fire and to resolve; in passing, what
// was empty in the demo has to get data. In the end every query has had data
// somewhere, every series that is named has existed, and every alert has fired and
// resolved.
//
//	go run ./test/monitoring                 everything
//	go run ./test/monitoring -part demo      the demo only
//	go run ./test/monitoring -part alerts -alerts TickLag
//
// So that this takes minutes, all times of the rules (for, interval, windows) are
// divided by -factor; thresholds are not. Nothing fails for being slow.
//
// It needs what make demo needs; for the alerts Linux, root, iptables and the
// programs of make cluster-binaries. test/monitoring/prometheus.sh says where the
// programs of Prometheus are.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/test/lab"
	"github.com/windlass-dev/windlass/test/monitoring/rulefile"
)

// options are what the command line says.
type options struct {
	part, alerts, trace string
	factor              float64
	keep                bool
	out                 io.Writer
}

// Parts of the whole.
const (
	demoPart   = "demo"
	alertsPart = "alerts"
)

// every is how often Prometheus scrapes and evaluates. A shortened window holds
// some scrapes.
const every = time.Second

// shortest is the shortest time in a rule: a rate needs two scrapes.
const shortest = 4 * every

// job is the label job, as the ServiceMonitor of a release gives it.
const job = "windlass"

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.part, "part", "", "only this `part`: demo or alerts")
	flag.StringVar(&o.alerts, "alerts", "", "only these `alerts`, such as TickLag,NoCapacity; then nothing is said of queries")
	flag.StringVar(&o.trace, "trace", "", "`folder` of a recorded trace for the demo (default: a built-in one)")
	flag.Float64Var(&o.factor, "factor", 20, "`factor` by which times of rules are divided")
	flag.BoolVar(&o.keep, "keep", false, "keep logs and say where")
	flag.Parse()
	ok, err := o.main()
	if err != nil {
		fmt.Fprintln(os.Stderr, "monitoring:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// main runs both parts, or is in the lab already. It says whether all is well.
func (o options) main() (ok bool, err error) {
	if o.part != "" && o.part != demoPart && o.part != alertsPart || o.factor < 1 {
		return false, fmt.Errorf("-part %q and -factor %v: write demo or alerts, and at least 1", o.part, o.factor)
	}
	if o.part == demoPart && o.alerts != "" {
		return false, fmt.Errorf("-part demo brings no alerts about, and -alerts names %s", o.alerts)
	}
	if err := checkAlerts(o.alerts); err != nil {
		return false, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if dir, inside := lab.Inside(); inside {
		return o.inLab(ctx, dir)
	}
	dir, remove, err := lab.Workspace("monitoring", o.keep)
	if err != nil {
		return false, err
	}
	defer remove()
	if err := prepare(dir, o.factor); err != nil {
		return false, err
	}
	ok = true
	if o.part != alertsPart && o.alerts == "" {
		if ok, err = o.demo(ctx, dir); err != nil {
			return false, err
		}
	}
	if o.part == demoPart {
		return ok, nil
	}
	status, err := lab.Enter(ctx, dir)
	return ok && status == 0, err
}

// What prepare leaves in the folder.
const (
	programsFile = "prometheus"
	rulesFolder  = "rules"
)

// prepare finds Prometheus and shortens the rules.
func prepare(dir string, factor float64) error {
	cmd := exec.Command("test/monitoring/prometheus.sh")
	cmd.Stderr = os.Stderr
	found, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("looking for prometheus: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, programsFile), []byte(strings.TrimSpace(string(found))), 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, rulesFolder), 0o755); err != nil {
		return err
	}
	_, err = rulefile.ShortenInto(filepath.Join(dir, rulesFolder), factor, shortest)
	return err
}

// prometheusIn is the path of prometheus that prepare has found.
func prometheusIn(dir string) (string, error) {
	programs, err := os.ReadFile(filepath.Join(dir, programsFile))
	return filepath.Join(string(programs), "prometheus"), err
}

// shortRules are the paths of the shortened rules.
func shortRules(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, rulesFolder, "*.yaml"))
}
