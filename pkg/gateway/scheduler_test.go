package gateway_test

import (
	"bytes"
	"sync"
	"testing"

	"google.golang.org/grpc"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
)

// fakeScheduler hands the tickets that it is offered to the test.
type fakeScheduler struct {
	t             testing.TB
	addr          string
	offers        chan *agentwire.Ticket
	cancellations chan *controlwire.Cancellation
	reports       chan *controlwire.LoanReport

	mu     sync.Mutex
	server *grpc.Server
	handed map[string]bool // the tokens that ticket gave to the test since the start
	stream grpc.BidiStreamingServer[controlwire.OfferRequest, controlwire.OfferReply]
}

func newFakeScheduler(t testing.TB) *fakeScheduler {
	s := &fakeScheduler{
		t: t, addr: "127.0.0.1:0",
		offers:        make(chan *agentwire.Ticket, 100_000),
		cancellations: make(chan *controlwire.Cancellation, 100_000),
		reports:       make(chan *controlwire.LoanReport, 100_000),
	}
	s.start()
	t.Cleanup(func() { s.stop() })
	return s
}

// start serves at the address that it had before, if it had one.
func (s *fakeScheduler) start() {
	l := listen(s.t, s.addr)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	controlwire.RegisterSchedulerServer(server, &schedulerService{fake: s})
	s.mu.Lock()
	s.addr, s.server, s.handed = l.Addr().String(), server, make(map[string]bool)
	s.mu.Unlock()
	go func() { _ = server.Serve(l) }()
}

// stop breaks all streams and forgets what was offered.
func (s *fakeScheduler) stop() {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	server.Stop()
	for {
		select {
		case <-s.offers:
		default:
			return
		}
	}
}

// refuse refuses a ticket at the gateway that offered last.
func (s *fakeScheduler) refuse(refusal *controlwire.Refusal) {
	s.t.Helper()
	if err := s.tryRefuse(refusal); err != nil {
		s.t.Error(err)
	}
}

// tryRefuse is refuse while the scheduler may be down.
func (s *fakeScheduler) tryRefuse(refusal *controlwire.Refusal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Send(&controlwire.OfferReply{Refusals: []*controlwire.Refusal{refusal}})
}

// ticket is the next one that it does not know. A gateway may offer one twice: when a
// stream opens, it cannot know what the last one lost. Schedulers pass over the second.
func (s *fakeScheduler) ticket() *agentwire.Ticket {
	s.t.Helper()
	for {
		ticket := s.offered()
		s.mu.Lock()
		known := s.handed[string(ticket.GetToken())]
		s.handed[string(ticket.GetToken())] = true
		s.mu.Unlock()
		if !known {
			return ticket
		}
	}
}

// offered is the next one, known or not.
func (s *fakeScheduler) offered() *agentwire.Ticket {
	s.t.Helper()
	return receive(s.t, s.offers, "a ticket")
}

// cancelled waits until a ticket is cancelled.
func (s *fakeScheduler) cancelled(ticket *agentwire.Ticket) {
	s.t.Helper()
	for !bytes.Equal(receive(s.t, s.cancellations, "a cancellation").GetInvocationId(), ticket.GetInvocationId()) {
	}
}

type schedulerService struct {
	controlwire.UnimplementedSchedulerServer
	fake *fakeScheduler
}

func (s *schedulerService) Offer(stream grpc.BidiStreamingServer[controlwire.OfferRequest, controlwire.OfferReply]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	if first.GetGateway() == "" {
		s.fake.t.Error("the first message says no address to claim at")
	}
	s.fake.mu.Lock()
	s.fake.stream = stream
	s.fake.mu.Unlock()
	for {
		request, err := stream.Recv()
		if err != nil {
			return nil
		}
		for _, t := range request.GetOffers() {
			s.fake.offers <- t
		}
		for _, w := range request.GetCancellations() {
			s.fake.cancellations <- w
		}
		for _, r := range request.GetReports() {
			s.fake.reports <- r
		}
	}
}
