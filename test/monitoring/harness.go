package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/test/lab"
	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
)

// harness is the lab with a Prometheus that watches it.
type harness struct {
	*lab.Lab
	prometheus *prometheus.Server
	node       *busyNode
	began      time.Time

	mu  sync.Mutex
	out io.Writer
	// failed says that something was held against Windlass.
	failed bool
}

const (
	// gatewayHolds is how many calls a gateway may hold.
	gatewayHolds = 200
	// createQPS is how many pods a scheduler may create in a second.
	createQPS = 2
	// patience is how long callers wait.
	patience = 90 * time.Second
	// restAfterFailure is how long a caller rests after a call that failed.
	restAfterFailure = 20 * time.Millisecond
	// askEvery is how often Prometheus is asked for what is awaited.
	askEvery = 200 * time.Millisecond
)

// labDir is where the lab writes, below the workspace.
func labDir(workspace string) string { return filepath.Join(workspace, "lab") }

// openHarness puts the lab together and has it watched.
func openHarness(ctx context.Context, dir string, out io.Writer) (w *harness, err error) {
	l, err := lab.Open(ctx, lab.Config{
		Dir: labDir(dir), Schedulers: 3, Gateways: 2, Nodes: 3, LeaseTTL: 5 * time.Second, Drain: time.Second,
		GatewayArguments: []string{
			fmt.Sprintf("--max-in-flight=%d", gatewayHolds),
			// Nobody listens there, but exemplars have the ids of traces.
			"--tracing-endpoint=http://127.0.0.1:4317", "--tracing-sample-ratio=1",
		},
		SchedulerArguments: []string{fmt.Sprintf("--create-qps=%d", createQPS)},
	})
	if err != nil {
		return nil, err
	}
	w = &harness{Lab: l, began: time.Now(), out: out}
	if w.node, err = startNode(l.Config.Program("windlass"), filepath.Join(dir, "node")); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := w.watch(ctx, dir); err != nil {
		w.node.close()
		return nil, errors.Join(err, l.Close())
	}
	return w, nil
}

// watch starts Prometheus in the lab's network, with the labels that the
// ServiceMonitor gives.
func (w *harness) watch(ctx context.Context, dir string) error {
	program, err := prometheusIn(dir)
	if err != nil {
		return err
	}
	rules, err := shortRules(dir)
	if err != nil {
		return err
	}
	c := prometheus.Config{
		Program: program, Dir: filepath.Join(dir, "lab-prometheus"), Listen: "127.0.0.1:9090", Job: job, Rules: rules, Every: every,
		Targets: append(prometheus.LabTargets(w.Lab), nodeTarget()),
	}
	if err := os.Mkdir(c.Dir, 0o755); err != nil {
		return err
	}
	w.prometheus, err = prometheus.Start(ctx, c)
	return err
}

func (w *harness) close() error {
	w.prometheus.Stop()
	w.node.close()
	return w.Close()
}

// say prints a line.
func (w *harness) say(format string, arguments ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.out, format+"\n", arguments...)
}

// fail prints what is wrong.
func (w *harness) fail(format string, arguments ...any) {
	w.say("      "+format, arguments...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = true
}

// function creates a function of the lab.
func (w *harness) function(ctx context.Context, name string, edit func(*v1alpha1.FunctionSpec)) error {
	_, err := w.Cluster.Function(ctx, name, func(spec *v1alpha1.FunctionSpec) {
		spec.Template.Timeout.Duration, spec.Template.StartupTimeout.Duration = 10*time.Second, 30*time.Second
		edit(spec)
	})
	return err
}

// call has so many callers call a function without pause until stop is called,
// which breaks their calls off.
func (w *harness) call(ctx context.Context, function, query string, callers int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	balancer := loadgen.Balance(ctx, w.Targets(), loadgen.Client{Timeout: patience})
	path := fmt.Sprintf("/function/%s.%s?%s", function, lab.Namespace, query)
	l := loadgen.Start(ctx, loadgen.Config[bool]{
		Clients: callers,
		Next: func(turn loadgen.Turn) func(context.Context) bool {
			return func(ctx context.Context) bool {
				gateway := balancer.Pick(turn.Client + turn.N)
				call := gateway.Do(ctx, loadgen.Request{Method: http.MethodPost, URL: gateway.URL + path, Body: []byte("monitoring")})
				return call.Outcome == loadgen.Answered && call.Status == http.StatusOK
			}
		},
		Rest: func(succeeded bool) time.Duration {
			if succeeded {
				return 0
			}
			return restAfterFailure
		},
	})
	return func() {
		cancel()
		l.Stop()
		balancer.Close()
	}
}

// fires returns the alert of this name that fires for a function, or that names none.
func (w *harness) fires(ctx context.Context, alert, function string) (*prometheus.Alert, error) {
	firing, err := w.prometheus.Firing(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range firing {
		if a.Labels["alertname"] == alert && (a.Labels["function"] == "" || a.Labels["function"] == function) {
			return &a, nil
		}
	}
	return nil, nil
}

// checkAlerts returns an error if a list has a name that no alert has.
func checkAlerts(list string) error {
	if list == "" {
		return nil
	}
	all := append(functionScenarios(), componentScenarios()...)
	for name := range strings.SplitSeq(list, ",") {
		if !slices.ContainsFunc(all, func(s scenario) bool { return named(name, s.alert) }) || name == "" {
			return fmt.Errorf("-alerts: no alert is named %q", name)
		}
	}
	return nil
}

// named says whether a list such as "TickLag,NoCapacity" has a name; an empty one
// has all.
func named(list, name string) bool {
	if list == "" {
		return true
	}
	for one := range strings.SplitSeq(list, ",") {
		if strings.TrimPrefix(one, "Windlass") == strings.TrimPrefix(name, "Windlass") {
			return true
		}
	}
	return false
}
