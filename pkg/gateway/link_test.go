package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// deafScheduler opens streams and reads nothing from them.
type deafScheduler struct {
	controlwire.UnimplementedSchedulerServer
	opened chan struct{}
}

func (s *deafScheduler) Offer(stream grpc.BidiStreamingServer[controlwire.OfferRequest, controlwire.OfferReply]) error {
	s.opened <- struct{}{}
	<-stream.Context().Done()
	return nil
}

func serveDeaf(t *testing.T) (addr string, opened <-chan struct{}) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	deaf := &deafScheduler{opened: make(chan struct{}, 1000)}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	controlwire.RegisterSchedulerServer(server, deaf)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return l.Addr().String(), deaf.opened
}

// runWith runs a gateway with the given owner of all slots until the test ends.
func runWith(t *testing.T, owner string, maxInvocations int) *Gateway {
	config := DefaultConfig()
	config.ClaimAddr, config.MaxInvocations = "127.0.0.1:1", maxInvocations
	g, err := New(config, Deps{
		Catalog: catalog.New(), Router: ownership.NewStatic(ownership.Owner{ID: "one", Addr: owner}),
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return g
}

// linked waits until the gateway runs and returns its link.
func linked(g *Gateway) *link {
	for {
		if l := g.shell.links.to(7); l != nil {
			return l
		}
		<-time.After(time.Millisecond)
	}
}

// A scheduler that is there and reads nothing holds up nobody who offers, and what
// cannot be sent does not pile up.
func TestADeafSchedulerHoldsUpNobody(t *testing.T) {
	t.Parallel()
	const bound = 10
	addr, opened := serveDeaf(t)
	g := runWith(t, addr, bound)
	l := linked(g)
	<-opened
	// Two tickets of this size are more than the stream takes unread.
	ticket := &agentwire.Ticket{FunctionUid: strings.Repeat("x", 1<<20)}
	// It is taken for dead and tried again. The gateway drops what comes before it knows
	// that the stream is open.
	for again := false; !again; {
		l.enqueueOffer(ticket)
		l.enqueueCancel(invocation.ID{}, "uid")
		l.mu.Lock()
		offers, cancellations := len(l.pending.offers), len(l.pending.cancels)
		l.mu.Unlock()
		if offers > bound || cancellations > bound {
			t.Fatalf("%d offers and %d cancellations wait", offers, cancellations)
		}
		select {
		case <-opened:
			again = true
		case <-time.After(time.Millisecond):
		}
	}
}

// slowScheduler is a scheduler to which a message can be sent for each element of taken.
type slowScheduler struct {
	controlwire.SchedulerClient
	grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply]
	ctx   context.Context
	taken chan struct{}
	sent  []*controlwire.OfferRequest
}

func (s *slowScheduler) Offer(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply], error) {
	s.ctx = ctx
	return s, nil
}

func (s *slowScheduler) Context() context.Context { return s.ctx }

func (s *slowScheduler) Send(request *controlwire.OfferRequest) error {
	select {
	case <-s.taken:
		s.sent = append(s.sent, request)
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

func (s *slowScheduler) Recv() (*controlwire.OfferReply, error) {
	<-s.ctx.Done()
	return nil, s.ctx.Err()
}

// Who offers a ticket or cancels one returns at once, however slow the scheduler is and
// whatever others add meanwhile. All of it is sent, and the sender ends with the stream.
func TestL6WhoOffersWaitsForNoScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := DefaultConfig()
		config.ClaimAddr = "127.0.0.1:1"
		g, err := New(config, Deps{
			Catalog: catalog.New(), Router: ownership.NewStatic(ownership.Owner{ID: "one", Addr: "one"}),
			Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		l, slow := newLink(g.shell.links, "one"), &slowScheduler{taken: make(chan struct{})}
		ctx, cancel := context.WithCancel(context.Background())
		var conversing sync.WaitGroup
		conversing.Go(func() { l.runStream(ctx, slow) })
		slow.taken <- struct{}{} // who the gateway is
		synctest.Wait()
		begun := time.Now()
		for n := range 4 {
			l.enqueueOffer(&agentwire.Ticket{FunctionUid: fmt.Sprint(n)})
			l.enqueueCancel(invocation.ID{byte(n)}, "uid")
			synctest.Wait()
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("the one who offers waited for %v", waited)
		}
		for range 2 { // what the sender had already, and all that came since
			slow.taken <- struct{}{}
			synctest.Wait()
		}
		offers, cancellations := 0, 0
		for _, request := range slow.sent {
			offers += len(request.GetOffers())
			cancellations += len(request.GetCancellations())
		}
		if offers != 4 || cancellations != 4 {
			t.Errorf("%d offers and %d cancellations were sent in %d messages, want 4 each", offers, cancellations, len(slow.sent))
		}
		l.enqueueOffer(&agentwire.Ticket{})
		synctest.Wait()
		cancel() // while it sends
		conversing.Wait()
		l.enqueueOffer(&agentwire.Ticket{})
		if n := len(l.pending.offers); n != 0 {
			t.Errorf("%d tickets wait for no stream", n)
		}
	})
}

func TestASchedulerThatIsGoneIsForgotten(t *testing.T) {
	g := runWith(t, "127.0.0.1:1", 1)
	l := linked(g)
	now := time.Now()
	if g.shell.links.drop(l, now.Add(-time.Minute)) {
		t.Error("forgotten while it is used")
	}
	if !g.shell.links.drop(l, now.Add(time.Minute)) {
		t.Error("not forgotten")
	}
	if again := linked(g); again == l {
		t.Error("the forgotten link is used again")
	}
}

func TestNoLinkIsStartedUnlessTheGatewayRuns(t *testing.T) {
	config := DefaultConfig()
	config.ClaimAddr = "127.0.0.1:1"
	g, err := New(config, Deps{
		Catalog: catalog.New(), Router: ownership.NewStatic(ownership.Owner{ID: "one", Addr: "127.0.0.1:1"}),
		Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if l := g.shell.links.to(7); l != nil {
		t.Error("a link before Run")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Run(ctx); err != nil {
		t.Error(err)
	}
	if l := g.shell.links.to(7); l != nil {
		t.Error("a link after Run")
	}
}

func TestForwardedForNamesTheClient(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:1234":          "192.0.2.1",
		"[2001:db8::1]:1234":      "2001:db8::1",
		"[fe80::1%eth0]:1234":     "fe80::1%eth0",
		"@":                       "@",
		"[::ffff:192.0.2.1]:1234": "::ffff:192.0.2.1",
	} {
		from := callChain{proxied: true}
		for _, before := range []string{"", "203.0.113.9"} {
			r := &http.Request{RemoteAddr: remote, Header: make(http.Header)}
			full := want
			if before != "" {
				r.Header.Set("X-Forwarded-For", before)
				full = before + ", " + want
			}
			var got []string
			for _, h := range requestHeaders(r, invocation.ID{}, from) {
				if h.Name == "X-Forwarded-For" {
					got = append(got, h.Value)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint([]string{full}) {
				t.Errorf("%s: got %q, want %q", remote, got, full)
			}
		}
	}
}
