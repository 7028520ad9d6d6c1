package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/local"
	"github.com/windlass-dev/windlass/internal/replay"
	"github.com/windlass-dev/windlass/internal/workload"
)

// ErrFailed is returned when an example failed, or a demo that checks missed its goals.
// What that was has been printed.
var ErrFailed = errors.New("the demo failed")

const (
	maxInFlight = 1000
	callTimeout = 90 * time.Second
	warmCalls   = 300
)

// Config is what the demo needs to know.
type Config struct {
	// TraceDir is a folder with a trace of Azure Functions; empty for the
	// built-in one.
	TraceDir string
	// Minutes of the trace, at least 1, and by how much they are compressed.
	Minutes int
	Speed   float64
	// Seed of everything random in the trace.
	Seed uint64
	// ExamplesDir holds the example functions; it is in the top folder of
	// the project.
	ExamplesDir string
	// Check makes Run fail if a call failed or was lost, or if too many were cold
	// starts.
	Check bool
	// AgentPath is the agent's program.
	AgentPath string
	// Out gets the report. Terminal says that it is one.
	Out      io.Writer
	Terminal bool
	// Watch, unless nil, is called before the load with the URL of health and
	// metrics. An error of it ends the demo.
	Watch func(opsURL string) error
}

// Run runs the demo.
func Run(ctx context.Context, c Config) error {
	// 1. The trace, made to fit this machine.
	trace, err := load(c.TraceDir, c.Minutes, c.Seed)
	if err != nil {
		return err
	}
	if trace, err = fit(trace, c.Speed, runtime.NumCPU()); err != nil {
		return err
	}
	heading(c.Out, "Trace")
	fmt.Fprintln(c.Out, source(c.TraceDir))
	printLines(c.Out, trace.Describe())
	// 2. A Windlass of its own.
	w, stop, err := startLocal(c)
	if err != nil {
		return err
	}
	defer stop()
	if c.Watch != nil {
		if err := c.Watch(w.OpsURL()); err != nil {
			return err
		}
	}
	// 3. The functions.
	demo := &demo{Config: c, windlass: w}
	if err := demo.register(); err != nil {
		return err
	}
	if err := demo.callSamples(ctx); err != nil {
		return err
	}
	// 4. The replay.
	report, err := demo.replay(ctx, trace)
	if err != nil {
		return err
	}
	// 5. What a warm call costs.
	warm, err := replay.WarmProbe(ctx, w.GatewayURL()+"/function/fib?n=1", warmCalls)
	if err != nil {
		return err
	}
	return demo.printResult(report, warm)
}

// startLocal starts a Windlass with a data folder that is removed in the end.
func startLocal(c Config) (w *local.Windlass, stop func(), err error) {
	dir, err := os.MkdirTemp("", "windlass-demo-")
	if err != nil {
		return nil, nil, err
	}
	config := local.DefaultConfig()
	config.DataDir = dir
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	if c.AgentPath != "" {
		config.AgentPath = c.AgentPath
	}
	logFile, err := os.Create(filepath.Join(dir, "windlass.log"))
	if err != nil {
		return nil, nil, err
	}
	w, end, err := local.Start(config, slog.New(slog.NewTextHandler(logFile, nil)))
	if err != nil {
		_ = logFile.Close()
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return w, func() {
		if err := end(); err != nil {
			fmt.Fprintln(c.Out, "stopping:", err)
		}
		_ = logFile.Close()
		_ = os.RemoveAll(dir)
	}, nil
}

// demo is a running demo.
type demo struct {
	Config
	windlass *local.Windlass
	targets  []replay.Target
	// replayed are the functions that represent the trace's.
	replayed []*v1alpha1.Function
	samples  map[string]bool
}

// register registers the examples and the functions of the replay.
func (d *demo) register() error {
	samples, leftOut, err := examples(d.ExamplesDir)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(filepath.Dir(filepath.Clean(d.ExamplesDir)))
	if err != nil {
		return err
	}
	functions, calls, missing, err := targets(root)
	if err != nil {
		return err
	}
	d.targets, d.samples = calls, make(map[string]bool)
	for _, fn := range append(samples, functions...) {
		v1alpha1.Default(fn)
		if _, err := d.windlass.Store().Apply(fn); err != nil {
			return err
		}
	}
	for _, fn := range samples {
		d.samples[fn.Name] = true
	}
	for _, fn := range functions {
		registered, _ := d.windlass.Store().Get(fn.Key())
		d.replayed = append(d.replayed, registered)
	}
	for _, name := range append(leftOut, missing...) {
		fmt.Fprintln(d.Out, "left out:", name)
	}
	return nil
}

// maxAnswer is more than any example answers, in bytes.
const maxAnswer = 16 << 20

// callSamples calls each example once, as its README does.
func (d *demo) callSamples(ctx context.Context) error {
	heading(d.Out, "Examples")
	transport := loadgen.NewTransport(1)
	defer transport.CloseIdleConnections()
	client := loadgen.Client{Transport: transport, Keep: maxAnswer}
	for _, s := range samples {
		if !d.samples[s.function] {
			continue
		}
		body := []byte(s.body)
		if file := filepath.Join(d.ExamplesDir, s.body); s.body != "" && exists(file) {
			var err error
			if body, err = os.ReadFile(file); err != nil {
				return err
			}
		}
		call := client.Do(ctx, loadgen.Request{Method: s.method, URL: d.windlass.GatewayURL() + s.path, Body: body})
		if call.Err != nil {
			return call.Err
		}
		fmt.Fprintf(d.Out, "%-10s %-4s %-34s %d, %6d bytes of %s in %v\n", s.function, s.method, s.path,
			call.Status, len(call.Body), call.Header.Get("Content-Type"), call.Took().Round(time.Millisecond))
		if call.Status != http.StatusOK {
			return fmt.Errorf("%w: the example %s answered with %d: %s", ErrFailed, s.function, call.Status, call.Body)
		}
	}
	return nil
}

// replay replays the trace and summarizes its calls.
func (d *demo) replay(ctx context.Context, trace workload.Trace) (replay.Report, error) {
	mapping, err := replay.NewMapping(trace, d.targets)
	if err != nil {
		return replay.Report{}, err
	}
	heading(d.Out, "Replay")
	printLines(d.Out, mapping.Describe())
	transport := loadgen.NewTransport(maxInFlight)
	defer transport.CloseIdleConnections()
	calls, err := replay.New(
		replay.Config{Gateway: d.windlass.GatewayURL(), MaxInFlight: maxInFlight, Timeout: callTimeout},
		replay.Deps{Transport: transport, Progress: replay.ProgressPrinter(d.Out, d.Terminal)},
		trace, mapping,
	)
	if err != nil {
		return replay.Report{}, err
	}
	watching, stopWatching := context.WithCancel(ctx)
	peak := make(chan int, 1)
	go func() { peak <- d.watchPeak(watching) }()
	samples, err := calls.Run(ctx)
	stopWatching()
	if err != nil {
		<-peak
		return replay.Report{}, err
	}
	instances := map[string]replay.Instances{}
	all := replay.Instances{Peak: <-peak}
	for _, fn := range d.replayed {
		totals := d.windlass.Totals(fn)
		instances[fn.Name] = replay.Instances{Created: totals.Launched, Peak: totals.Peak}
		all.Created += totals.Launched
	}
	instances[replay.AllFunctions] = all
	return replay.Summarize(samples, instances), nil
}

// watchPeak returns the most instances of all replayed functions that it saw at
// a time until ctx ended.
func (d *demo) watchPeak(ctx context.Context) (peak int) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return peak
		case <-tick.C:
		}
		now := 0
		for _, fn := range d.replayed {
			now += int(d.windlass.Status(fn).Instances.Desired)
		}
		peak = max(peak, now)
	}
}

// printResult prints the report, and what it missed.
func (d *demo) printResult(report replay.Report, warm replay.Warm) error {
	heading(d.Out, "Result")
	fmt.Fprintln(d.Out, report.Table())
	printLines(d.Out, report.Values())
	fmt.Fprintf(d.Out, "warm_added_p50_ms=%.3f\nwarm_added_p95_ms=%.3f\nwarm_calls=%d\n",
		milliseconds(warm.Added.P50), milliseconds(warm.Added.P95), warm.Added.N)
	text, err := resultText(replay.Violations(report, replay.Bounds{}), d.Check)
	fmt.Fprint(d.Out, text)
	return err
}

// resultText is the closing line about what a replay missed. Only a demo with --check has
// goals, and fails without them.
func resultText(missed []string, check bool) (string, error) {
	if !check {
		return "", nil
	}
	if len(missed) == 0 {
		return "\nAll calls were answered, none was lost, and few were cold starts.\n", nil
	}
	var text strings.Builder
	for _, m := range missed {
		fmt.Fprintln(&text, "FAILED:", m)
	}
	return text.String(), ErrFailed
}

func heading(w io.Writer, title string) { fmt.Fprintf(w, "\n== %s\n", title) }

func printLines(w io.Writer, lines []string) {
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}
