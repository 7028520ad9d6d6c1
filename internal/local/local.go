package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/local/embeddedetcd"

	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/internal/tracing"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/etcd"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/process"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

const (
	nodeName   = localapi.NodeName
	keysPrefix = "/windlass/local"
	leaseTTL   = 10 * time.Second
)

// Windlass is one local Windlass.
type Windlass struct {
	config    Config
	log       *slog.Logger
	registry  *exposition.Registry
	store     *file.Store
	estimates *estimatesFile
	traces    *tracing.Tracer
	callLog   *callLog
	process   *process.Driver
	node      *nodeScheduler // nil if calls are not ordered

	listeners

	// callers and key are nil and empty unless keys are required.
	callers *auth.Callers
	key     string

	// printed gets what functions print; nil if nobody wants it.
	printed func(instancelog.Line)

	ready     chan struct{}
	scheduler *scheduler.Scheduler // valid once ready
	rollouts  *rollouts            // valid once ready
	gateway   *gateway.Gateway     // valid once ready
}

// Open takes possession of the data folder and of the addresses. It starts nothing. Its caller
// must call Run or Close.
func Open(config Config, log *slog.Logger) (*Windlass, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	w := &Windlass{config: config, log: log, registry: exposition.NewRegistry(), ready: make(chan struct{})}
	w.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), serve.NewBuildInfo())
	if err := w.open(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Start opens a Windlass and runs it, and returns when calls can be made. Stop ends it,
// waits until all has ended, and returns what Run does.
func Start(config Config, log *slog.Logger) (w *Windlass, stop func() error, err error) {
	if w, err = Open(config, log); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-w.Ready():
		return w, func() error { cancel(); return <-ended }, nil
	case err := <-ended:
		cancel()
		return nil, nil, err
	}
}

func (w *Windlass) open() (err error) {
	if w.wire, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if err := w.openProcesses(); err != nil {
		return err
	}
	if w.store, err = file.Open(filepath.Join(w.config.DataDir, "functions")); err != nil {
		return err
	}
	w.estimates = openEstimates(w.config.DataDir, w.log)
	w.callLog = newCallLog(w.config.DataDir, w.process.LogSize)
	if w.traces, err = tracing.New(w.config.Tracing, tracing.Deps{Service: "windlass", Registry: w.counting(), Log: w.log}); err != nil {
		return err
	}
	if w.config.RequireKeys {
		if err = w.requireKeys(); err != nil {
			return err
		}
	}
	return w.listeners.listenAll(w.config)
}

// openProcesses takes possession of the data folder.
func (w *Windlass) openProcesses() (err error) {
	config := process.Config{DataDir: w.config.DataDir, AgentPath: w.config.AgentPath, SchedulerAddr: w.wire.Addr().String()}
	deps := process.Deps{Launcher: process.LauncherFunc(runtimes.Launch), Logger: w.log}
	if w.config.NodeScheduling.Order != "" {
		w.node = newNodeScheduler(w.config.NodeScheduling, w.log)
		config.NodeAddr, deps.Groups = config.SchedulerAddr, w.node
	}
	w.process, err = process.New(config, deps)
	switch {
	case errors.Is(err, process.ErrInUse):
		return fmt.Errorf("--data-dir %s is in use by another Windlass: stop that one, or choose another folder with --data-dir", w.config.DataDir)
	case errors.Is(err, process.ErrUnusable):
		return unusable(w.config.DataDir, err)
	case err != nil || w.node == nil:
		return err
	}
	return w.node.open(w.config.DataDir, w.counting())
}

// Close gives back what Open took. Run does so at its end, so it is needed only for a Windlass
// that is not run.
func (w *Windlass) Close() {
	w.listeners.close()
	if w.node != nil {
		_ = w.node.close()
	}
	// The data folder goes last: the next Windlass there begins by removing what this one uses.
	if w.process != nil {
		_ = w.process.Close()
	}
}

// Kill ends all processes of all functions at once. It is for the end of this process while Run
// has not returned.
func (w *Windlass) Kill() { w.process.Kill() }

// OnPrinted has each line that functions print handed over. It is for before Run.
func (w *Windlass) OnPrinted(printed func(instancelog.Line)) { w.printed = printed }

// Run runs until ctx ends or a part fails. It returns when all has ended.
func (w *Windlass) Run(ctx context.Context) error {
	defer w.Close()
	parts := lifecycle.New()
	defer parts.Stop()
	if err := w.start(ctx, parts); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	close(w.ready)
	select {
	case <-ctx.Done():
		return nil
	case err := <-parts.Failed():
		return err
	}
}

// start makes the parts and starts them in the order in which they need each
// other.
func (w *Windlass) start(ctx context.Context, parts *lifecycle.Lifecycle) error {
	// 1. Who owns which slot.
	server, err := embeddedetcd.Start(ctx, embeddedetcd.Config{Dir: filepath.Join(w.config.DataDir, "etcd"), Log: w.log})
	if err != nil {
		return err
	}
	parts.OnStop(server.Close)
	keeper, err := w.startOwnership(ctx, parts, server.Client())
	if err != nil {
		return err
	}
	if w.traces != nil {
		parts.Start("traces", w.traces.Run)
	}
	// 2. The scheduler and the gateway, which instances can reach.
	instances := provisioner.New(
		provisioner.Config{Nodes: []placement.Node{{Name: nodeName, Allocatable: w.config.Capacity}}},
		provisioner.Deps{Driver: w.process, StartObserver: w.process, Lister: w.process, Now: time.Now, Log: w.log},
	)
	if w.scheduler, err = scheduler.New(w.config.Scheduler, scheduler.Deps{
		Catalog: w.store.Catalog(), Estimates: w.estimates.Estimates, Ownership: keeper, Instances: instances,
		Registry: w.counting(), Traces: w.traces, Log: w.log, Now: time.Now,
	}); err != nil {
		return err
	}
	w.rollouts = newRollouts(w.store, w.scheduler, w.log)
	w.rollouts.unordered = w.node == nil
	config := w.config.Gateway
	config.ClaimAddr = w.claims.Addr().String()
	if w.gateway, err = gateway.New(config, gateway.Deps{
		Catalog: w.store.Catalog(), Callers: w.callerPolicy(), Registry: w.counting(), Log: w.log, Traces: w.traces, CallLog: w.callLog,
		Router: ownership.NewStatic(ownership.Owner{ID: nodeName, Addr: w.wire.Addr().String()}), Left: serve.ClientLeft, Linger: serve.Linger,
	}); err != nil {
		return err
	}
	w.serveWire(parts)
	// 3. Instances, and those who order them.
	recorder := instancelog.NewRecorder(w.config.DataDir, instancelog.RecorderDeps{Now: time.Now, OnLine: w.printed, Log: w.log})
	parts.Start("log times", recorder.Run)
	if w.node != nil {
		parts.Start("node agent", w.node.run)
	}
	parts.Start("process runtime", w.process.Run)
	parts.Start("provisioner", func(ctx context.Context) error { return instances.Run(ctx, w.scheduler) })
	parts.Start("scheduler", w.scheduler.Run)
	parts.Start("rollouts", w.rollouts.Run)
	parts.Start("estimates", func(ctx context.Context) error { return w.estimates.persist(ctx, w.scheduler) })
	// 4. Calls: last to come and first to go.
	if w.callers != nil {
		parts.Start("callers", w.callers.Run)
	}
	parts.Start("gateway", w.gateway.Run)
	w.serveHTTP(parts, "operations", w.ops, w.operations())
	parts.Start("control", func(ctx context.Context) error {
		return localapi.Serve(ctx, w.control, w.controlAPI())
	})
	w.serveCalls(parts)
	parts.OnStop(w.gateway.Drain)
	return nil
}

// startOwnership claims all slots: the epochs keep apart the instances of this
// process and of those before it that have logs.
func (w *Windlass) startOwnership(ctx context.Context, parts *lifecycle.Lifecycle, client *clientv3.Client) (scheduler.Ownership, error) {
	last, err := instancelog.LastEpoch(w.config.DataDir)
	if err != nil {
		w.log.Warn("some logs of earlier instances cannot be read: new instances may be given their names", "err", err)
	}
	deps := etcd.Deps{Client: client, Log: w.log}
	config := etcd.Config{ID: nodeName, Addr: w.wire.Addr().String(), Prefix: keysPrefix, TTL: leaseTTL}
	keeper, err := etcd.NewCoordinator(config, deps)
	if err != nil {
		return nil, err
	}
	parts.Start("slot keeper", keeper.Run)
	select {
	case <-keeper.Ready():
		return risingEpochs{keeper, last}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// counting is where calls and decisions are counted; nil for nowhere.
func (w *Windlass) counting() prometheus.Registerer {
	if w.config.NoMetrics {
		return nil
	}
	return w.registry
}

// Ready is closed when calls can be made.
func (w *Windlass) Ready() <-chan struct{} { return w.ready }

// Store is where functions are registered.
func (w *Windlass) Store() *file.Store { return w.store }

// Status is the observed status of a function.
func (w *Windlass) Status(fn *v1alpha1.Function) v1alpha1.FunctionStatus {
	select {
	case <-w.ready:
	default:
		return v1alpha1.FunctionStatus{}
	}
	status := w.scheduler.Status(fn)
	w.rollouts.fillStatus(fn, &status)
	status.URL = w.FunctionURL(fn)
	return status
}

// Report returns the last decisions on a function.
func (w *Windlass) Report(key invocation.FunctionKey) (decisionlog.Report, bool) {
	select {
	case <-w.ready:
		return w.scheduler.Report(key)
	default:
	}
	// It has decided nothing yet.
	_, known := w.store.Catalog().Get(key)
	return decisionlog.Report{Namespace: key.Namespace, Name: key.Name, Served: true, Decisions: []decisionlog.ReportEntry{}}, known
}

// Latest returns the last decision on each function that had one recently.
func (w *Windlass) Latest() decisionlog.LatestReport {
	select {
	case <-w.ready:
		return w.scheduler.Latest()
	default:
		return decisionlog.LatestReport{Functions: []decisionlog.Report{}}
	}
}

// Totals counts the launches for a function so far.
func (w *Windlass) Totals(fn *v1alpha1.Function) scheduler.Totals {
	return w.scheduler.Totals(string(fn.UID))
}
