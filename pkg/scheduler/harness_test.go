package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/reconcile"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// harness is a scheduler with a real provisioner, reached by gRPC, in a bubble of
// virtual time. What is fake are the instances and the gateways.
type harness struct {
	t         testing.TB
	scheduler *Scheduler
	instances *provisioner.Provisioner
	runtime   *fakeRuntime
	catalog   *catalog.Catalog
	registry  *exposition.Registry
	ownership *fakeOwnership
	log       *logBuffer
	// broken is how many differences the test has brought about, by kind.
	broken map[string]float64
	client struct {
		agentwire.InstancesClient
		controlwire.SchedulerClient
	}
	// stop ends Run and waits for it.
	stop func()
}

type harnessConfig struct {
	Config
	// node is what the only node can hold, in thousandths of a core. Every
	// instance of an ordinary function requests 100.
	node int64
	// nodes is how many such nodes there are; 0 means one.
	nodes int
	// shared says that instances outlive the scheduler, which is at self:1.
	shared bool
	// local says that there never is another scheduler.
	local bool
	// runtimes, if there are any, may have warm pools.
	runtimes Runtimes
	// traces may be nil.
	traces Traces
	// noRegistry says that there is no Registry.
	noRegistry bool
	// nodesOf are those of several worlds; nil for one with nodes of its own.
	nodesOf provisioner.Nodes
}

// defaults are those with the paper's decider, whose decisions can be told
// beforehand.
func defaults() harnessConfig {
	config := DefaultConfig()
	config.Decider = "FPCSch"
	return harnessConfig{Config: config, node: 100_000}
}

// inHarness runs body in a world.
func inHarness(t *testing.T, config harnessConfig, body func(w *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newHarness(t, config)
		defer w.run(t)()
		body(w)
		w.expectReconciled()
	})
}

// run lets a world begin, and end.
func (w *harness) run(t *testing.T) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	provisioning := start(t, ctx, func(ctx context.Context) error { return w.instances.Run(ctx, w.scheduler) })
	schedulerCtx, stop := context.WithCancel(ctx)
	scheduling := start(t, schedulerCtx, w.scheduler.Run)
	w.stop = func() {
		stop()
		scheduling.Wait()
	}
	hangUp := w.serve()
	synctest.Wait()
	return func() {
		w.stop()
		hangUp()
		cancel()
		provisioning.Wait()
	}
}

func start(t testing.TB, ctx context.Context, run func(context.Context) error) *sync.WaitGroup {
	var running sync.WaitGroup
	running.Go(func() {
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	})
	return &running
}

func newHarness(t testing.TB, config harnessConfig) *harness {
	w := &harness{
		t: t, catalog: catalog.New(), registry: exposition.NewRegistry(), log: &logBuffer{},
		runtime:   &fakeRuntime{exits: make(chan provisioner.Exit, 1<<14), alive: make(map[provisioner.Key]chan struct{})},
		ownership: newFakeOwnership(),
	}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	deps := provisioner.Deps{Driver: w.runtime, StartObserver: w.runtime, Lister: w.runtime, Drift: w.runtime, Now: time.Now, Log: log}
	if config.shared {
		config.ID = "self"
		// Which function adopted instances are of, the fake does not know.
		deps.Lister, deps.Drift = nil, nil
		deps.Adopting, deps.Verify = w.runtime, func(provisioner.Key, string) error { return nil }
	}
	if config.runtimes != nil {
		config.ID = "self"
		deps.Assigner, deps.Identify, deps.Verify = w.runtime, w.runtime.identify, w.runtime.verify
	}
	nodes := []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: config.node, Memory: 1 << 50}}}
	for i := 1; i < config.nodes; i++ {
		n := nodes[0]
		n.Name += fmt.Sprint(i)
		nodes = append(nodes, n)
	}
	deps.Nodes = config.nodesOf
	w.instances = provisioner.New(provisioner.Config{Nodes: nodes}, deps)
	var registry prometheus.Registerer
	if !config.noRegistry {
		registry = w.registry
	}
	var router Router
	if !config.local {
		router = w.ownership
	}
	var err error
	w.scheduler, err = New(config.Config, Deps{
		Runtimes: config.runtimes,
		Router:   router,
		Catalog:  w.catalog, Ownership: w.ownership, Instances: w.instances,
		Registry: registry, Traces: config.traces, Log: log, Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.scheduler.Serving(true)
	return w
}

// serve serves the scheduler to w.client until hangUp.
func (w *harness) serve() (hangUp func()) {
	listener := bufconn.Listen(64 << 10)
	server := serve.NewWire(prometheus.NewRegistry(), nil)
	agentwire.RegisterInstancesServer(server, w.scheduler)
	controlwire.RegisterSchedulerServer(server, w.scheduler)
	ctx, stop := context.WithCancel(context.Background())
	serving := start(w.t, ctx, func(ctx context.Context) error { return serve.Wire(ctx, listener, server) })
	agents := &agentClients{listener: listener}
	w.client.InstancesClient, w.client.SchedulerClient = agents, controlwire.NewSchedulerClient(agents.connect())
	return func() {
		agents.close()
		stop()
		serving.Wait()
	}
}

// agentClients are agents: each has a connection of its own.
type agentClients struct {
	listener *bufconn.Listener

	mu    sync.Mutex
	conns []*grpc.ClientConn
}

func (a *agentClients) connect() *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///scheduler",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return a.listener.DialContext(ctx) }),
	)
	if err != nil {
		panic(err) // the target is the same each time
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, conn)
	return conn
}

// Pull implements agentwire.InstancesClient.
func (a *agentClients) Pull(ctx context.Context, options ...grpc.CallOption) (agentwire.Instances_PullClient, error) {
	return agentwire.NewInstancesClient(a.connect()).Pull(ctx, options...)
}

func (a *agentClients) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.conns {
		_ = c.Close()
	}
}

// put registers a function with one unit, changed by the given changes.
func (w *harness) put(name string, changes ...func(*v1alpha1.Function)) *v1alpha1.Function {
	fn := newTestFunction(name, changes...)
	w.catalog.Put(entryOf(fn))
	synctest.Wait()
	return fn
}

func newTestFunction(name string, changes ...func(*v1alpha1.Function)) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID, fn.Generation = "ns", name, types.UID("uid-"+name), 1
	fn.Spec.Template.Concurrency = 1
	fn.Spec.Template.Timeout.Duration = time.Minute
	fn.Spec.Template.StartupTimeout.Duration = 10 * time.Second
	fn.Spec.Scaling.ScaleDown.IdleTimeout.Duration = 10*time.Minute + v1alpha1.BackoffAfter
	fn.Spec.Scaling.ScaleDown.LastInstanceIdleTimeout.Duration = time.Hour
	cpu, memory := resource.MustParse("100m"), resource.MustParse("64Mi")
	fn.Spec.Template.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
	for _, change := range changes {
		change(fn)
	}
	return fn
}

func minInstances(n int32) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Spec.Scaling.MinInstances = n }
}
func maxInstances(n int32) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Spec.Scaling.MaxInstances = &n }
}
func concurrency(n int32) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Spec.Template.Concurrency = n }
}

func generation(n int64) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) { fn.Generation = n }
}

// revision makes a function the unit of one of its revisions, with a UID of its own.
func revision(n int64) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		of := fn.FunctionUID()
		fn.UID, fn.Generation = types.UID(fmt.Sprintf("%s-%d", of, n)), n
		fn.Annotations = map[string]string{
			v1alpha1.AnnotationRevision: fmt.Sprintf("%05d", n), v1alpha1.AnnotationFunctionUID: of,
		}
	}
}

// entryOf is a function that has these units only.
func entryOf(units ...*v1alpha1.Function) *rollout.Entry {
	fn := units[0].DeepCopy()
	fn.UID, fn.Annotations = types.UID(fn.FunctionUID()), nil
	return &rollout.Entry{Function: fn, Units: units}
}

// putUnits lets a function have these units and no others.
func (w *harness) putUnits(units ...*v1alpha1.Function) {
	w.catalog.Put(entryOf(units...))
	synctest.Wait()
}

// after lets virtual time pass.
func (w *harness) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ticks lets so many ticks pass.
func (w *harness) ticks(n int) { w.after(time.Duration(n) * w.scheduler.shell.config.Tick) }

func (w *harness) expectLog(parts ...string) {
	w.t.Helper()
	for line := range strings.Lines(w.log.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return
		}
	}
	w.t.Errorf("no line of the log has all of %q:\n%s", parts, w.log)
}

func (w *harness) expectCounts(fn *v1alpha1.Function, want provisioner.Counts) {
	w.t.Helper()
	synctest.Wait()
	if got := w.instances.Observe(string(fn.UID)).Counts; got != want {
		w.t.Errorf("%s has %+v, want %+v", fn.Name, got, want)
	}
}

// fakeOwnership owns everything or nothing, and then it knows who does, if anybody.
// It is the Router as well.
type fakeOwnership struct {
	changed chan struct{}

	mu          sync.Mutex
	slots       ownership.Map
	owned       bool
	other       string // address of the owner, if it is another
	silent      bool   // the other is, so that the scheduler stands in
	unconfirmed bool
	others      map[ownership.Slot]bool // those of others, though owned
	stalled     chan struct{}           // until it is closed, nobody is told an epoch
}

func newFakeOwnership() *fakeOwnership {
	return &fakeOwnership{owned: true, changed: make(chan struct{}, 1)}
}

func (k *fakeOwnership) Route(slot ownership.Slot) (to ownership.Owner, acting, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.others[slot]:
		return ownership.Owner{ID: "another", Addr: "another:1", Epoch: 7}, false, true
	case k.owned:
		return ownership.Owner{ID: "self", Addr: "self:1", Epoch: 7}, false, true
	case k.silent:
		return ownership.Owner{ID: "self", Addr: "self:1", Epoch: 8}, true, true
	case k.other == "":
		return ownership.Owner{}, false, false
	}
	return ownership.Owner{ID: "other", Addr: k.other, Epoch: 8}, false, true
}

func (k *fakeOwnership) Map() *ownership.Map {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.slots.Clone()
}

// owns makes everything be known to be somebody's.
func (k *fakeOwnership) owns(id string) {
	k.change(func() {
		for slot := range ownership.Slot(ownership.Slots) {
			k.slots.Reset(slot, ownership.Owner{ID: id, Addr: id + ":1", Epoch: 7})
		}
	})
}

func (k *fakeOwnership) Changed() <-chan struct{} { return k.changed }

func (k *fakeOwnership) Unconfirmed() (since time.Time, unconfirmed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Time{}, k.unconfirmed
}

// lose gives everything to another scheduler.
func (k *fakeOwnership) lose(to string) {
	k.change(func() { k.owned, k.silent, k.other = false, false, to })
}

// silence makes the other scheduler silent.
func (k *fakeOwnership) silence() { k.change(func() { k.silent = true }) }

func (k *fakeOwnership) setUnconfirmed(yes bool) { k.change(func() { k.unconfirmed = yes }) }

func (k *fakeOwnership) own(owned bool) { k.change(func() { k.owned = owned }) }

func (k *fakeOwnership) change(how func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	how()
	select {
	case k.changed <- struct{}{}:
	default:
	}
}

// stall makes the scheduler stand still as soon as it asks what it owns.
func (k *fakeOwnership) stall() (resume func()) {
	stalled := make(chan struct{})
	k.change(func() { k.stalled = stalled })
	return func() {
		k.change(func() { k.stalled = nil })
		close(stalled)
	}
}

func (k *fakeOwnership) Epoch(slot ownership.Slot) (uint64, bool) {
	k.mu.Lock()
	stalled := k.stalled
	k.mu.Unlock()
	if stalled != nil {
		<-stalled
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return 7, k.owned && !k.others[slot]
}

// logBuffer is a log for many goroutines.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// fakeRuntime starts nothing. An instance ends when it is told to stop, or when
// the test ends it.
type fakeRuntime struct {
	exits chan provisioner.Exit

	mu      sync.Mutex
	started []provisioner.InstanceSpec
	taken   int
	alive   map[provisioner.Key]chan struct{} // closed when it ends
	stopped []provisioner.Key
	// finished are those that were said to have finished when they were stopped first.
	finished []provisioner.Key
	// deaf instances do not end when they are told to.
	deaf bool
	// refuse, if set before Run, is called for each that is started.
	refuse func(provisioner.InstanceSpec)
	// existing are those that somebody else has started.
	existing []provisioner.Existing
	released []string
	// strays exist, and are not in its book.
	strays reconcile.Set[provisioner.Key]
	pods   fakePods
	// progress is how far starts have come: when they were created and sandboxed.
	progress map[provisioner.Key][2]time.Time
}

func (r *fakeRuntime) Progress(uid string, cid invocation.CID) (created, sandboxed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.progress[keyOf(uid, cid)]
	return seen[0], seen[1]
}

// has notes how far the start of an instance has come.
func (r *fakeRuntime) has(key provisioner.Key, created, sandboxed time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.progress == nil {
		r.progress = make(map[provisioner.Key][2]time.Time)
	}
	r.progress[key] = [2]time.Time{created, sandboxed}
}

func (r *fakeRuntime) Adopt(*v1alpha1.Function) []provisioner.Existing {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.existing)
}

func (r *fakeRuntime) Release(uid string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.released = append(r.released, uid)
}

func (r *fakeRuntime) Start(spec provisioner.InstanceSpec) {
	r.mu.Lock()
	r.started = append(r.started, spec)
	r.pods.add(keyOf(string(spec.Function.UID), spec.CID))
	r.alive[keyOf(string(spec.Function.UID), spec.CID)] = make(chan struct{})
	r.mu.Unlock()
	if r.refuse != nil {
		r.refuse(spec)
	}
}

func (r *fakeRuntime) Stop(uid string, cid invocation.CID, finished bool) {
	r.mu.Lock()
	key := keyOf(uid, cid)
	if finished && !slices.Contains(r.stopped, key) {
		r.finished = append(r.finished, key)
	}
	r.stopped = append(r.stopped, key)
	deaf := r.deaf
	r.mu.Unlock()
	if !deaf {
		r.end(key, "stopped")
	}
}

func (r *fakeRuntime) Instances() []provisioner.Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.alive))
}

func (r *fakeRuntime) Drift([]provisioner.Served) (found reconcile.Difference[provisioner.Key]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found.Unknown = maps.Clone(r.strays)
	return found
}

// stray lets these exist and nobody know of them.
func (r *fakeRuntime) stray(keys ...provisioner.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strays = reconcile.SetOf(keys...)
}

func (r *fakeRuntime) MarkGone(provisioner.Key) {}

// vanish ends an instance without a word.
func (r *fakeRuntime) vanish(key provisioner.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.alive, key)
}

func (r *fakeRuntime) Exits() <-chan provisioner.Exit { return r.exits }

// end ends an instance, once.
func (r *fakeRuntime) end(key provisioner.Key, reason string) { r.fail(key, "", reason) }

// fail ends an instance for a reason with a code.
func (r *fakeRuntime) fail(key provisioner.Key, code, reason string) {
	r.mu.Lock()
	ended, alive := r.alive[key]
	delete(r.alive, key)
	r.mu.Unlock()
	if alive {
		close(ended)
		r.exits <- provisioner.Exit{FunctionUID: key.FunctionUID, CID: key.CID, Code: code, Reason: reason, LogTail: []string{"last words"}}
	}
}

// take returns the instances that were started since the last call.
func (r *fakeRuntime) take() []provisioner.InstanceSpec {
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := slices.Clone(r.started[r.taken:])
	r.taken = len(r.started)
	return fresh
}

// started returns what was started since the last call, which must be of one
// function and so many.
func (w *harness) started(fn *v1alpha1.Function, n int) []provisioner.InstanceSpec {
	w.t.Helper()
	synctest.Wait()
	fresh := w.runtime.take()
	for _, spec := range fresh {
		if spec.Function.UID != fn.UID {
			w.t.Fatalf("an instance of %s was started, want %s", spec.Function.Name, fn.Name)
		}
	}
	if len(fresh) != n {
		w.t.Fatalf("%d instances of %s were started, want %d", len(fresh), fn.Name, n)
	}
	return fresh
}

// recvAll hands every reply of a stream to add, and the stream's end to end.
func recvAll[T any](recv func() (*T, error), add func(*T), end func(error)) {
	for {
		reply, err := recv()
		if err != nil {
			if err == io.EOF {
				err = nil
			}
			end(err)
			return
		}
		add(reply)
	}
}

func idOf(n int) invocation.ID { return invocation.ID([]byte(fmt.Sprintf("%016d", n))) }

// waiting is how many calls of a function wait.
func (w *harness) waiting(fn *v1alpha1.Function) int {
	return w.scheduler.shell.lookup(string(fn.UID)).view(time.Now()).Waiting
}
