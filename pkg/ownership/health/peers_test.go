package health

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// book is a Directory.
type book struct {
	changed chan struct{}
	mu      sync.Mutex
	known   *ownership.Map
}

func newBook() *book { return &book{changed: make(chan struct{}, 1), known: new(ownership.Map)} }

func (b *book) Map() *ownership.Map {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.known
}

func (b *book) Changed() <-chan struct{} { return b.changed }

func (b *book) Update(slot ownership.Slot, owner ownership.Owner) (news bool) {
	b.edit(func(m *ownership.Map) { news = m.Update(slot, owner) })
	return news
}

func (b *book) edit(how func(m *ownership.Map)) {
	b.mu.Lock()
	next := *b.known
	how(&next)
	b.known = &next
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// fakeScheduler answers heartbeats.
type fakeScheduler struct {
	controlwire.UnimplementedSchedulerServer
	addr    string
	serving atomic.Bool
	deaf    atomic.Bool
	knows   *ownership.Map
	refuses error                              // nil if it accepts heartbeats
	asked   chan *controlwire.HeartbeatRequest // nil if nobody wants to see heartbeats
	server  *grpc.Server
	ended   chan struct{}
}

func startScheduler(t *testing.T, addr string) *fakeScheduler {
	t.Helper()
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeScheduler{addr: listener.Addr().String(), server: grpc.NewServer(grpc.WaitForHandlers(true)), ended: make(chan struct{}), knows: new(ownership.Map)}
	s.serving.Store(true)
	controlwire.RegisterSchedulerServer(s.server, s)
	go func() {
		defer close(s.ended)
		_ = s.server.Serve(listener)
	}()
	t.Cleanup(s.stop)
	return s
}

func (s *fakeScheduler) stop() {
	s.server.Stop()
	<-s.ended
}

func (s *fakeScheduler) Heartbeat(stream grpc.BidiStreamingServer[controlwire.HeartbeatRequest, controlwire.HeartbeatReply]) error {
	for s.refuses == nil {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		if s.asked != nil {
			select {
			case s.asked <- request:
			default:
			}
		}
		if !s.deaf.Load() {
			_ = stream.Send(&controlwire.HeartbeatReply{Number: request.GetNumber(), Serving: s.serving.Load(), Epoch: s.knows.LastEpoch(), CapacityFreed: []*controlwire.CapacityFreed{{FunctionUid: "f", Instances: 2}}})
		}
	}
	return s.refuses
}

func (s *fakeScheduler) Slots(context.Context, *controlwire.SlotsRequest) (*controlwire.SlotsReply, error) {
	return ToWire(s.knows), nil
}

const slot = ownership.Slot(9)

// watch runs Peers of two schedulers of which a owns the slot.
func watch(t *testing.T, a, b *fakeScheduler) (*Peers, *book) {
	t.Helper()
	p, known := watchAndLog(t, a, b, slog.New(slog.DiscardHandler))
	awaitRoute(t, p, "a", false)
	return p, known
}

func watchAndLog(t *testing.T, a, b *fakeScheduler, log *slog.Logger) (*Peers, *book) {
	t.Helper()
	known := newBook()
	known.edit(func(m *ownership.Map) {
		m.SetMembers([]ownership.Member{{ID: "a", Addr: a.addr}, {ID: "b", Addr: b.addr}})
		m.Update(slot, ownership.Owner{ID: "a", Addr: a.addr, Epoch: 4})
	})
	p, err := New(Config{}, Deps{Directory: known, Registry: prometheus.NewRegistry(), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p, known
}

// awaitRoute waits until a slot goes where it should; far longer than it takes.
func awaitRoute(t *testing.T, p *Peers, id string, acting bool) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		to, standsIn, _ := p.Route(slot)
		if to.ID == id && standsIn == acting {
			return
		}
		select {
		case <-p.Changed():
		case <-deadline:
			t.Fatalf("the slot goes to %v, provisionally %v; want %s, %v", to, standsIn, id, acting)
		}
	}
}

func TestStandbysServeTheSlotsOfOneThatIsGone(t *testing.T) {
	a, b := startScheduler(t, "127.0.0.1:0"), startScheduler(t, "127.0.0.1:0")
	p, _ := watch(t, a, b)
	a.stop()
	awaitRoute(t, p, "b", true)
	if to, _, _ := p.Route(slot); to.Epoch != 4 {
		t.Errorf("who stands in has the epoch %d, want the owner's, 4", to.Epoch)
	}
	startScheduler(t, a.addr)
	awaitRoute(t, p, "a", false)
}

func TestStandbysServeTheSlotsOfOneThatDoesNotAnswer(t *testing.T) {
	a, b := startScheduler(t, "127.0.0.1:0"), startScheduler(t, "127.0.0.1:0")
	p, _ := watch(t, a, b)
	a.deaf.Store(true)
	awaitRoute(t, p, "b", true)
	a.deaf.Store(false)
	awaitRoute(t, p, "a", false)
}

func TestStandbysServeTheSlotsOfOneThatDoesNotServe(t *testing.T) {
	a, b := startScheduler(t, "127.0.0.1:0"), startScheduler(t, "127.0.0.1:0")
	p, _ := watch(t, a, b)
	a.serving.Store(false)
	awaitRoute(t, p, "b", true)
}

func TestTheLogSaysWhyASchedulerIsSilent(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(a *fakeScheduler)
		says    string
	}{
		"it refuses the protocol":   {func(a *fakeScheduler) { a.refuses = status.Error(codes.FailedPrecondition, "speaks 7 to 8") }, "speaks 7 to 8"},
		"it leaves heartbeats":      {func(a *fakeScheduler) { a.deaf.Store(true) }, "heartbeats unanswered"},
		"it stops":                  {func(a *fakeScheduler) { a.serving.Store(false) }, "starts or stops"},
		"nobody listens any longer": {func(a *fakeScheduler) { a.stop() }, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := startScheduler(t, "127.0.0.1:0"), startScheduler(t, "127.0.0.1:0")
			c.happens(a)
			lines := make(chan string, 100)
			p, _ := watchAndLog(t, a, b, slog.New(slog.NewTextHandler(writer(lines), nil)))
			awaitRoute(t, p, "b", true)
			if line := <-lines; !strings.Contains(line, `msg="a scheduler is silent"`) || !strings.Contains(line, c.says) {
				t.Errorf("the log says %q", line)
			}
		})
	}
}

// writer passes on what is written.
type writer chan<- string

func (w writer) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

// One whose lease was lost may serve on, until it is known that another owns the
// slot.
func TestAnOwnerThatIsNoMemberStaysOneWhileItAnswers(t *testing.T) {
	a, b := startScheduler(t, "127.0.0.1:0"), startScheduler(t, "127.0.0.1:0")
	p, known := watch(t, a, b)
	known.edit(func(m *ownership.Map) { m.SetMembers([]ownership.Member{{ID: "b", Addr: b.addr}}) })
	known.edit(func(m *ownership.Map) {
		m.Update(slot+1, ownership.Owner{ID: "b", Addr: b.addr, Epoch: 5})
	})
	for to, _, known := p.Route(slot + 1); !known || to.ID != "b"; to, _, known = p.Route(slot + 1) {
		<-p.Changed()
	}
	if to, acting, _ := p.Route(slot); to.ID != "a" || acting {
		t.Errorf("the slot goes to %v", to)
	}
	a.stop()
	awaitRoute(t, p, "b", true)
}

// Who cannot read etcd learns from the others.
func TestALaterOwnerIsKnownFromOtherSchedulers(t *testing.T) {
	a, b := startScheduler(t, "127.0.0.1:0"), startScheduler(t, "127.0.0.1:0")
	b.knows.SetMembers([]ownership.Member{{ID: "b", Addr: b.addr}})
	b.knows.Update(slot, ownership.Owner{ID: "b", Addr: b.addr, Epoch: 17})
	p, _ := watch(t, a, b)
	awaitRoute(t, p, "b", false)
}

func TestFetch(t *testing.T) {
	a := startScheduler(t, "127.0.0.1:0")
	conn, err := Dial(a.addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := Fetch(t.Context(), conn); err == nil {
		t.Error("a scheduler that knows nobody is no source")
	}
	a.knows.SetMembers([]ownership.Member{{ID: "a", Addr: a.addr, Draining: true}})
	a.knows.Update(slot, ownership.Owner{ID: "a", Addr: a.addr, Epoch: 17})
	got, err := Fetch(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	if owner, known := got.Owner(slot); !known || owner.Epoch != 17 || len(got.Members()) != 1 || !got.Members()[0].Draining {
		t.Errorf("Fetch = %v, %v", owner, got.Members())
	}
}
