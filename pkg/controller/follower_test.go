package controller

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// fakeSchedulers are schedulers that tell what a test lets them tell.
type fakeSchedulers struct {
	mu      sync.Mutex
	changed chan struct{}
	all     map[string]*fakeScheduler
}

type fakeScheduler struct {
	controlwire.UnimplementedSchedulerServer
	listener *bufconn.Listener
	server   *grpc.Server
	send     chan *controlwire.WatchReply
	// broken makes the stream that has an element end.
	broken chan struct{}
}

func newFakeSchedulers() *fakeSchedulers {
	return &fakeSchedulers{changed: make(chan struct{}), all: make(map[string]*fakeScheduler)}
}

func (f *fakeSchedulers) Addresses(context.Context) ([]string, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var addresses []string
	for address := range f.all {
		addresses = append(addresses, address)
	}
	return addresses, f.changed, nil
}

// add starts a scheduler.
func (f *fakeSchedulers) add(t *testing.T, address string) *fakeScheduler {
	s := &fakeScheduler{
		listener: bufconn.Listen(1 << 16),
		// As those of every Windlass program.
		server: grpc.NewServer(grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true})),
		send:   make(chan *controlwire.WatchReply), broken: make(chan struct{}),
	}
	controlwire.RegisterSchedulerServer(s.server, s)
	go func() { _ = s.server.Serve(s.listener) }()
	t.Cleanup(s.server.Stop)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all[address] = s
	f.poke()
	return s
}

func (f *fakeSchedulers) remove(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, address)
	f.poke()
}

func (f *fakeSchedulers) poke() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// dial are the options that lead to the fakes.
func (f *fakeSchedulers) dial() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			f.mu.Lock()
			s := f.all[address]
			f.mu.Unlock()
			if s == nil {
				return nil, errors.New("no such scheduler")
			}
			return s.listener.DialContext(ctx)
		}),
	}
}

func (s *fakeScheduler) Watch(_ *controlwire.WatchRequest, stream grpc.ServerStreamingServer[controlwire.WatchReply]) error {
	for {
		select {
		case <-stream.Context().Done():
			return nil
		case <-s.broken:
			return errors.New("broken for a test")
		case reply := <-s.send:
			if err := stream.Send(reply); err != nil {
				return err
			}
		}
	}
}

// says makes the scheduler tell something to its watchers.
func (s *fakeScheduler) says(t *testing.T, reply *controlwire.WatchReply) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	select {
	case s.send <- reply:
	case <-ctx.Done():
		t.Fatal("nobody listens to the scheduler")
	}
}

func TestFollowerListensToEverySchedulerAndComesBack(t *testing.T) {
	schedulers := newFakeSchedulers()
	one := schedulers.add(t, "one:1")
	metrics, err := newMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	book := newFactStore(func(types.NamespacedName) {}, newPoolStore(func(string) {}))
	f := &follower{schedulers: schedulers, dial: schedulers.dial(), facts: book, metrics: metrics, log: slog.New(slog.DiscardHandler)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.run(ctx) }()

	knows := func(uid string, created int64) {
		t.Helper()
		eventually(t, func(context.Context) error {
			if facts, _ := book.get(types.UID(uid)); facts == nil || facts.created != created {
				return errors.New("the book does not say so")
			}
			return nil
		})
	}
	one.says(t, says("u", 1))
	knows("u", 1)
	one.broken <- struct{}{}
	one.says(t, says("u", 2))
	knows("u", 2)
	two := schedulers.add(t, "two:2")
	two.says(t, says("u", 3))
	two.says(t, says("v", 4))
	knows("u", 3)
	knows("v", 4)
	schedulers.remove("two:2")
	eventually(t, func(context.Context) error {
		if facts, _ := book.get("v"); facts != nil {
			return errors.New("the facts of a scheduler that is gone are believed")
		}
		return nil
	})
	knows("u", 2)

	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// mutableConn is a connection that may go silent, as when the other machine is gone.
type mutableConn struct {
	net.Conn
	mute *atomic.Bool
}

func (c mutableConn) Read(p []byte) (int, error) {
	for {
		if n, err := c.Conn.Read(p); err != nil || !c.mute.Load() {
			return n, err
		}
	}
}

func (c mutableConn) Write(p []byte) (int, error) {
	if c.mute.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// A scheduler that is gone with its machine ends no stream, and another one may have nothing to
// report of its functions.
func TestAStreamThatGoesSilentEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schedulers, mute := newFakeSchedulers(), new(atomic.Bool)
		one := schedulers.add(t, "one:1")
		metrics, err := newMetrics(prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		book := newFactStore(func(types.NamespacedName) {}, newPoolStore(func(string) {}))
		dial := append(schedulers.dial(), grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := one.listener.DialContext(ctx)
			return mutableConn{conn, mute}, err
		}))
		f := &follower{schedulers: schedulers, dial: dial, facts: book, metrics: metrics, log: slog.New(slog.DiscardHandler)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- f.run(ctx) }()
		one.says(t, says("u", 1))
		time.Sleep(time.Minute)
		if facts, _ := book.get("u"); facts == nil {
			t.Error("a scheduler that has nothing to say is taken for one that is gone")
		}
		mute.Store(true)
		time.Sleep(20*time.Second + lostGrace)
		if facts, _ := book.get("u"); facts != nil {
			t.Error("the facts of a scheduler that is gone are believed")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// testTimeout is how long a test waits for something that should come at once.
const testTimeout = 30 * time.Second

// eventually waits until check says nothing more.
func eventually(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, testTimeout, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}
