package twin

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/nodepick"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// actual is the scheduler with its provisioner, in a bubble of virtual time. What stands
// in for others are the gateway, and the runtime with its instances.
type actual struct {
	t      testing.TB
	load   load
	begun  time.Time
	client wirev1.SchedulerClient

	mu     sync.Mutex
	orders []order
	exits  chan provisioner.Exit
	alive  map[provisioner.Key]context.CancelFunc
	agents sync.WaitGroup
}

// playReal lets the scheduler provide for a load, and returns what it ordered.
func playReal(t *testing.T, l load, decider string) (orders []order) {
	synctest.Test(t, func(t *testing.T) {
		r := &actual{t: t, load: l, exits: make(chan provisioner.Exit, 1<<14), alive: make(map[provisioner.Key]context.CancelFunc)}
		log := slog.New(slog.DiscardHandler)
		instances := provisioner.New(
			provisioner.Config{Nodes: []nodepick.Node{{Name: "n", Allocatable: node}}},
			provisioner.Deps{Runtime: r, Now: time.Now, Log: log},
		)
		functions, config := catalog.New(), scheduler.DefaultConfig()
		config.Decider = decider
		s, err := scheduler.New(config, scheduler.Deps{
			Catalog: functions, Keeper: owner{}, Instances: instances,
			Registry: prometheus.NewRegistry(), Log: log, Now: time.Now,
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Serving(true)
		r.begun = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, run := range []func(context.Context) error{s.Run, func(ctx context.Context) error { return instances.Run(ctx, s) }} {
			running.Go(func() {
				if err := run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		hangUp := r.serve(s)
		fn := l.function()
		functions.Put(fn)
		synctest.Wait()
		r.call(ctx, fn)
		orders = r.ordered()
		cancel() // first, or what ends would be replaced
		running.Wait()
		for key := range r.living() {
			r.Stop(key.FunctionUID, key.CID)
		}
		r.agents.Wait()
		hangUp()
	})
	return orders
}

func (l load) function() *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID, fn.Generation = "ns", "f", "uid-f", 1
	fn.Spec.Concurrency = 1
	fn.Spec.Timeout.Duration, fn.Spec.StartupTimeout.Duration = time.Minute, time.Minute
	fn.Spec.Scaling.BackoffAfter.Duration = 10 * time.Second
	fn.Spec.Scaling.IdleTimeout.Duration = 10 * time.Minute
	fn.Spec.Scaling.KeepLast.Duration = time.Hour
	cpu := resource.NewMilliQuantity(requests.MilliCPU, resource.DecimalSI)
	memory := resource.NewQuantity(requests.Memory, resource.BinarySI)
	fn.Spec.Resources.Requests = v1alpha1.ResourceList{CPU: cpu, Memory: memory}
	return fn
}

func (r *actual) serve(s *scheduler.Scheduler) (hangUp func()) {
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	wirev1.RegisterSchedulerServer(server, s)
	go func() { _ = server.Serve(listener) }()
	conn, err := grpc.NewClient("passthrough:///scheduler",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
	)
	if err != nil {
		r.t.Fatal(err)
	}
	r.client = wirev1.NewSchedulerClient(conn)
	return func() {
		_ = conn.Close()
		server.Stop()
		_ = listener.Close()
	}
}

// call offers the load's calls when they are due.
func (r *actual) call(ctx context.Context, fn *v1alpha1.Function) {
	stream, err := r.client.Offer(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := stream.Send(&wirev1.OfferRequest{Gateway: "g:1"}); err != nil {
		r.t.Fatal(err)
	}
	for i, at := range r.load.calls {
		time.Sleep(at - time.Since(r.begun))
		id := invoke.ID{byte(i >> 16), byte(i >> 8), byte(i), 1}
		request := &wirev1.OfferRequest{Offers: []*wirev1.Ticket{{
			InvocationId: id[:], FunctionUid: string(fn.UID), Token: id[:], RemainingNs: int64(time.Hour),
		}}}
		if err := stream.Send(request); err != nil {
			r.t.Error(err)
		}
	}
	time.Sleep(r.load.length - time.Since(r.begun))
	synctest.Wait()
}

// Start implements provisioner.Runtime.
func (r *actual) Start(spec provisioner.InstanceSpec) {
	ctx, cancel := context.WithCancel(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders = note(r.orders, time.Since(r.begun), 1)
	r.alive[provisioner.Key{FunctionUID: string(spec.Function.UID), CID: spec.CID}] = cancel
	r.agents.Go(func() { r.live(ctx, spec) })
}

// Stop implements provisioner.Runtime.
func (r *actual) Stop(uid string, cid invoke.CID) {
	r.mu.Lock()
	key := provisioner.Key{FunctionUID: uid, CID: cid}
	end, alive := r.alive[key]
	delete(r.alive, key)
	if alive {
		r.orders = note(r.orders, time.Since(r.begun), -1)
	}
	r.mu.Unlock()
	if alive {
		end()
		r.exits <- provisioner.Exit{FunctionUID: uid, CID: cid, Reason: "stopped"}
	}
}

// Exits implements provisioner.Runtime.
func (r *actual) Exits() <-chan provisioner.Exit { return r.exits }

func (r *actual) ordered() []order {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orders
}

func (r *actual) living() map[provisioner.Key]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	living := make(map[provisioner.Key]bool)
	for key := range r.alive {
		living[key] = true
	}
	return living
}

// live is the life of an instance: it starts, and runs one call after the other.
func (r *actual) live(ctx context.Context, spec provisioner.InstanceSpec) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(r.load.start):
	}
	stream, err := r.client.Pull(ctx)
	if err != nil {
		return
	}
	hello := &wirev1.Hello{FunctionUid: string(spec.Function.UID), Generation: 1, Cid: string(spec.CID), Token: spec.Token}
	// What cannot be sent is heard of by Recv.
	_ = stream.Send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Hello{Hello: hello}})
	_ = stream.Send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Pull{Pull: &wirev1.Pull{Credits: 1}}})
	for {
		reply, err := stream.Recv()
		if err != nil {
			if err != io.EOF && ctx.Err() == nil {
				r.t.Error(err)
			}
			return
		}
		if ticket := reply.GetTicket(); ticket != nil {
			time.Sleep(r.load.work)
			done := &wirev1.Done{InvocationId: ticket.GetInvocationId(), ExecNs: int64(r.load.work)}
			_ = stream.Send(&wirev1.PullRequest{Kind: &wirev1.PullRequest_Pull{Pull: &wirev1.Pull{Credits: 1, Done: []*wirev1.Done{done}}}})
		}
	}
}

// owner owns every slot.
type owner struct{}

func (owner) Epoch(ownership.Slot) (uint64, bool) { return 1, true }
func (owner) Orphan() (since time.Time, orphan bool) {
	return time.Time{}, false
}
