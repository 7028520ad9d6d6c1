package wire

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// harness is what surrounds the roles: functions, instances, clients and who owns what. The
// roles that are real are programs of this tree.
type harness struct {
	t       *testing.T
	network *network
	// real tells which roles are programs of this tree.
	real func(role string) bool
	// did is told what real roles do to the world.
	did func(action)
	// recorder overhears the servers; nil if nobody does.
	recorder *recorder

	owners    *owners
	platform  *platform
	clients   *clients
	functions map[string]*v1alpha1.Function // the last unit of each, by name
	units     map[string]*v1alpha1.Function // all that there were, by UID
	runtimes  *runtimes
	catalogs  map[string]*catalog.Catalog
	// schedulers are those that are real, and running what runs until the end.
	schedulers map[string]*scheduler.Scheduler
	running    sync.WaitGroup
	ctx        context.Context
	cancel     context.CancelFunc
}

// newHarness makes a world in a bubble; begin lets it begin.
func newHarness(t *testing.T, n *network, isReal func(role string) bool, did func(action)) *harness {
	w := &harness{
		t: t, network: n, real: isReal, did: did,
		owners: newOwners(n), runtimes: new(runtimes),
		functions: make(map[string]*v1alpha1.Function), units: make(map[string]*v1alpha1.Function), catalogs: make(map[string]*catalog.Catalog),
		schedulers: make(map[string]*scheduler.Scheduler),
	}
	w.platform = newPlatform(w)
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

var silent = slog.New(slog.DiscardHandler)

// begin starts the roles that are there from the beginning.
func (w *harness) begin() {
	if w.real(theGateway) {
		w.startGateway()
	}
	for _, role := range []string{schedulerA, schedulerB} {
		if w.real(role) {
			w.startScheduler(role)
		}
	}
	synctest.Wait()
}

// end ends all that is real.
func (w *harness) end() {
	w.platform.end()
	w.clients.end()
	w.cancel()
	w.running.Wait()
}

func (w *harness) run(what string, run func(context.Context) error) {
	w.running.Go(func() {
		if err := run(w.ctx); err != nil {
			w.t.Errorf("%s: %v", what, err)
		}
	})
}

func (w *harness) serve(role string, register func(grpc.ServiceRegistrar)) {
	var options []grpc.ServerOption
	if w.recorder != nil {
		options = w.recorder.options(role)
	}
	l, server := w.network.listen(role), serve.NewWire(prometheus.NewRegistry(), nil, options...)
	register(registrar{server, w.recorder, role})
	w.run("the server of "+role, func(ctx context.Context) error { return serve.Wire(ctx, l, server) })
}

// registrar registers services of a role, which are overheard if there is a recorder.
type registrar struct {
	*serve.WireServer
	recorder *recorder
	role     string
}

// RegisterService implements grpc.ServiceRegistrar.
func (r registrar) RegisterService(of *grpc.ServiceDesc, service any) {
	if r.recorder != nil {
		of = r.recorder.overheard(r.role, of)
	}
	r.WireServer.RegisterService(of, service)
}

func (w *harness) startGateway() {
	w.catalogs[theGateway] = catalog.New()
	config := gateway.DefaultConfig()
	config.ClaimAddr = w.network.addrs[theGateway]
	g, err := gateway.New(config, gateway.Deps{
		Catalog: w.catalogs[theGateway], Router: w.owners.seenBy(theGateway), Schedulers: w.network.as(theGateway), Log: silent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	l, agents := w.network.listen(theGateway), serve.NewAgents(prometheus.NewRegistry(), nil, g)
	w.run("the server of the gateway", func(ctx context.Context) error { return serve.Agents(ctx, l, agents) })
	w.run("the gateway", g.Run)
	w.clients = newClients(w, g)
}

func (w *harness) startScheduler(role string) {
	w.catalogs[role] = catalog.New()
	runtime := w.platform.runtimeOf(role)
	nodes := []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: 100_000, Memory: 1 << 50}}}
	instances := provisioner.New(provisioner.Config{Nodes: nodes}, provisioner.Deps{
		Driver: runtime, Adopting: runtime, Assigner: runtime, Identify: w.platform.identify, Verify: w.platform.verify,
		Now: time.Now, Log: silent,
	})
	config := scheduler.DefaultConfig()
	config.ID = role
	view := w.owners.seenBy(role)
	s, err := scheduler.New(config, scheduler.Deps{
		Catalog: w.catalogs[role], Ownership: view, Router: view, Runtimes: w.runtimes, Instances: instances,
		Schedulers: w.network.as(role), Log: silent, Now: time.Now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.schedulers[role] = s
	w.serve(role, func(r grpc.ServiceRegistrar) {
		agentwire.RegisterInstancesServer(r, s)
		controlwire.RegisterSchedulerServer(r, s)
	})
	w.run("the instances of "+role, func(ctx context.Context) error { return instances.Run(ctx, s) })
	w.run(role, s.Run)
	s.Serving(true)
}

// startPeers watches schedulers as gateways do.
func (w *harness) startPeers() {
	watching, err := health.New(health.Config{}, health.Deps{
		Directory: w.owners.hearsay(), Credentials: w.network.as(thePeers), Registry: prometheus.NewRegistry(), Log: silent,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.run("the peers", watching.Run)
}

// startController watches a scheduler as the controller does.
func (w *harness) startController(of string) {
	w.run("the controller", func(ctx context.Context) error {
		conn, err := health.Dial(w.network.addrs[of], w.network.as(theController))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		replies, err := controlwire.NewSchedulerClient(conn).Watch(ctx, &controlwire.WatchRequest{Hello: health.Hello()})
		for err == nil {
			_, err = replies.Recv()
		}
		return nil
	})
}

// act lets something happen to the world.
func (w *harness) act(text string) {
	words := strings.Fields(text)
	what, args := words[0], words[1:]
	switch what {
	case "own":
		w.owners.own(args[0])
	case "function":
		fn := newFunction(args[0], args[1:])
		w.put(rollout.Alone(fn), args[1:])
	case "runtime":
		w.runtimes.put(args[0])
	case "change":
		w.put(changed(w.functions[args[0]]), nil)
	case "delete":
		for _, c := range w.catalogs {
			c.Remove(w.functions[args[0]].Key())
		}
	case "call", "upload":
		if w.real(theGateway) {
			w.clients.call(number(args[0]), args[1], strings.Join(args[2:], " "), what == "upload")
		}
	case "hang-up":
		if w.real(theGateway) {
			w.clients.hangUp(number(args[0]))
		}
	case "answer", "stream", "break":
		w.platform.answer(number(args[0]), answer{how: what, text: strings.Join(args[1:], " ")})
	case "peers":
		if w.real(thePeers) {
			w.startPeers()
		}
	case "watch":
		if w.real(theController) {
			w.startController(args[0])
		}
	case "drain":
		if s := w.schedulers[args[0]]; s != nil {
			s.Serving(false)
		}
	case "wait":
	default:
		w.t.Fatalf("%q is not among what can happen", text)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// put lets all know a function, or only those that are named.
func (w *harness) put(e *rollout.Entry, words []string) {
	unit := e.Units[0]
	w.functions[unit.Name], w.units[string(unit.UID)] = unit, unit
	for role, c := range w.catalogs {
		if only := value(words, "only"); only == "" || only == role {
			c.Put(e)
		}
	}
}

// changed is a function whose calls go to its next revision.
func changed(was *v1alpha1.Function) *rollout.Entry {
	fn := was.DeepCopy()
	fn.Generation++
	number := fmt.Sprintf("%05d", fn.Generation)
	unit := fn.DeepCopy()
	unit.UID += types.UID("-" + number)
	unit.Annotations = map[string]string{v1alpha1.AnnotationRevision: number, v1alpha1.AnnotationFunctionUID: string(fn.UID)}
	return &rollout.Entry{Function: fn, Units: []*v1alpha1.Function{unit}, Routes: []rollout.Route{{Weight: 100, Unit: unit}}}
}

// runtimes are the ClusterRuntimes: none or one.
type runtimes struct {
	mu  sync.Mutex
	all []*v1alpha1.ClusterRuntime
}

// put makes one with a warm pool of one instance.
func (r *runtimes) put(name string) {
	rt := &v1alpha1.ClusterRuntime{}
	rt.Name, rt.Spec.Image, rt.Spec.FileExtension = name, "example.com/runtime:1", "py"
	rt.Spec.WarmPools = []v1alpha1.WarmPool{{Name: "small", Size: 1}}
	v1alpha1.DefaultClusterRuntime(rt)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, rt)
}

func (r *runtimes) List() []*v1alpha1.ClusterRuntime {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

func (r *runtimes) NamespaceLabels(string) map[string]string { return nil }

func (r *runtimes) Get(name string) (*v1alpha1.ClusterRuntime, bool) {
	for _, rt := range r.List() {
		if rt.Name == name {
			return rt, true
		}
	}
	return nil, false
}

// value is that of the word that is a key.
func value(words []string, key string) string {
	for _, word := range words {
		if v, is := strings.CutPrefix(word, key+"="); is {
			return v
		}
	}
	return ""
}

func newFunction(name string, words []string) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID, fn.Generation = "ns", name, types.UID("uid-"+name), 1
	if runtime := value(words, "runtime"); runtime == "" {
		fn.Spec.Template.Image = "example.com/function:1"
	} else {
		fn.Spec.Template.RuntimeRef.Name, fn.Spec.Template.Handler = v1alpha1.RuntimeName(runtime), "app.handler"
		fn.Spec.Template.Code = &v1alpha1.Code{Inline: "def handler(event, context): return 'hello'"}
	}
	v1alpha1.Default(fn)
	scaling := &fn.Spec.Scaling
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "min":
			scaling.MinInstances = int32(number(value))
		case "max":
			n := int32(number(value))
			scaling.MaxInstances = &n
		case "idle":
			scaling.ScaleDown.IdleTimeout.Duration, _ = time.ParseDuration(value)
			scaling.ScaleDown.LastInstanceIdleTimeout = scaling.ScaleDown.IdleTimeout
		case "timeout":
			fn.Spec.Template.Timeout.Duration, _ = time.ParseDuration(value)
		case "delivery":
			fn.Spec.Calls.Delivery = v1alpha1.Delivery(value)
		case "onClientDisconnect":
			fn.Spec.Calls.OnClientDisconnect = v1alpha1.OnClientDisconnect(value)
		case "rate":
			fn.Spec.Calls.Rate = v1alpha1.Rate{Requests: int32(number(value))}
		}
	}
	v1alpha1.Default(fn)
	return fn
}
