package gateway_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FuzzFramesOfAgents has two agents send whatever the data says. The gateway answers each client
// once, gives no call to two places, and says "no" of none that an instance had.
func FuzzFramesOfAgents(f *testing.F) {
	// Claim, answer and keep; then calls by loans, in both ways to answer.
	f.Add([]byte{0, 0, 1, 1, 6, 7, 2, 2, 6, 3, 4, 5, 4, 6, 3, 6})
	// Releases with and without credits, credits taken back, and more credits than there are.
	f.Add([]byte{0, 0, 4, 1, 0, 0, 4, 3, 8, 2, 6, 4, 2, 9, 1, 6, 4, 4, 6, 4, 6})
	// Two agents want one call, and answer it twice.
	f.Add([]byte{0, 0, 128, 0, 1, 1, 129, 1, 1, 1, 3, 1, 5, 1, 4, 1})
	// Frames that nobody should send.
	f.Add([]byte{0, 0, 10, 4, 0, 2, 3, 1, 2, 3, 10, 6, 255, 1, 8, 200, 1, 0, 0, 0, 0, 0, 0, 10, 11, 0, 1, 1, 255, 10, 3, 0, 1, 0})
	f.Fuzz(runFrames)
}

// runFrames has two agents send what the data says.
func runFrames(t *testing.T, data []byte) {
	w := newHarness(t)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	s := &framesScript{harness: w, ctx: ctx, data: data[:min(len(data), 256)], granted: make(map[invocation.ID]int), released: make(map[invocation.ID]int)}
	for range 2 {
		s.call()
		s.agents = append(s.agents, s.connect())
	}
	for len(s.data) > 0 {
		s.step()
	}
	for _, a := range s.agents {
		a.ping()
		a.conn.Close()
	}
	hangUp()
	for _, answers := range s.answers {
		s.check(receive(t, answers, "the answer"))
	}
	until(t, "nothing is left", func() bool { return w.gateway.Entries() == 0 && w.gateway.Held() == 0 })
	s.reading.Wait()
}

// framesScript does what the data says.
type framesScript struct {
	*harness
	ctx     context.Context // of the clients
	data    []byte
	agents  []*framesAgent
	tickets []*agentwire.Ticket
	answers []<-chan answer
	reading sync.WaitGroup

	mu sync.Mutex // guards everything below
	// granted is how often a call came to an instance, and released how often one gave it back.
	granted, released map[invocation.ID]int
}

// framesAgent is an agent that notes which calls come.
type framesAgent struct {
	*agent
	script *framesScript
	claims map[uint32]bool // the numbers of its claims

	calls map[uint32]invocation.ID // those that came; under the script's lock
}

// next is the next byte of the data.
func (s *framesScript) next() (b byte) {
	if len(s.data) > 0 {
		b, s.data = s.data[0], s.data[1:]
	}
	return b
}

// call makes a call, and notes its ticket if one comes.
func (s *framesScript) call() {
	s.answers = append(s.answers, s.harness.call(s.get(fmt.Sprint("/function/hello/", len(s.answers))).WithContext(s.ctx)))
	select {
	case ticket := <-s.scheduler.offers:
		s.tickets = append(s.tickets, ticket)
	case <-time.After(5 * time.Millisecond):
	}
}

func (s *framesScript) connect() *framesAgent {
	conn, err := net.Dial("tcp", s.wireAddr)
	if err != nil {
		s.Fatal(err)
	}
	a := &framesAgent{agent: newAgent(s.T, conn), script: s, claims: make(map[uint32]bool), calls: make(map[uint32]invocation.ID)}
	hello := callwire.Hello{CID: fmt.Sprint(len(s.agents)), ProtocolMin: 1, ProtocolMax: 1}
	a.write(hello.Append)
	s.reading.Go(a.read)
	return a
}

// read notes the calls that come.
func (a *framesAgent) read() {
	defer close(a.gone)
	for {
		f, err := a.readFrame()
		switch {
		case err != nil:
			return
		case f.Kind == callwire.KindPong:
			select {
			case a.pongs <- struct{}{}:
			default:
			}
		case f.Kind == callwire.KindCall:
			call, err := callwire.ParseCall(f)
			if err != nil {
				a.t.Error(err)
			}
			a.script.came(a, f.Call, call.Invocation)
		}
	}
}

// came notes that a call came to an agent. It must have been given back as often as it came
// before.
func (s *framesScript) came(a *framesAgent, number uint32, id invocation.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.granted[id] > s.released[id] {
		s.Errorf("call %s is in two places", id)
	}
	if _, twice := a.calls[number]; twice {
		s.Errorf("the number %d was used twice", number)
	}
	s.granted[id]++
	a.calls[number] = id
}

// leaves notes that an agent is about to give a call back, which counts once; false if it is not
// known whether there is such a call.
func (s *framesScript) leaves(a *framesAgent, number uint32) bool {
	a.ping()
	s.mu.Lock()
	defer s.mu.Unlock()
	id, has := a.calls[number]
	if has && id != (invocation.ID{}) {
		s.released[id]++
		a.calls[number] = invocation.ID{}
	}
	return has
}

// ping waits until everything was handled, or the connection has ended.
func (a *framesAgent) ping() {
	a.write(func(b []byte) []byte { return callwire.AppendFrame(b, callwire.KindPing, 0, 0, nil) })
	select {
	case <-a.pongs:
	case <-a.gone:
	case <-time.After(patience):
		a.t.Error("the gateway no longer reads")
	}
}

// step carries out one event.
func (s *framesScript) step() {
	op := s.next()
	a := s.agents[op>>7]
	switch op & 15 {
	case 0:
		var claim callwire.Claim
		if n := int(s.next()); len(s.tickets) > 0 {
			ticket := s.tickets[n%len(s.tickets)]
			copy(claim.Invocation[:], ticket.GetInvocationId())
			copy(claim.Token[:], ticket.GetToken())
		}
		number := uint32(2*len(a.claims) + 1)
		a.claims[number] = true
		a.write(func(b []byte) []byte { return callwire.AppendClaim(b, number, claim) })
	case 1:
		a.answer(s, &callwire.Head{Status: 200, ContentLength: -1, Whole: true, Keeps: true})
	case 2:
		a.answer(s, &callwire.Head{Status: 200, ContentLength: -1, Whole: true})
	case 3:
		a.answer(s, &callwire.Head{Status: 200, ContentLength: -1})
	case 4:
		number, flags := uint32(s.next()&15), s.next()
		if s.leaves(a, number) {
			l := callwire.Release{Keeps: flags&1 != 0, NoCredit: flags&2 != 0}
			a.write(func(b []byte) []byte { return l.Append(b, number) })
		}
	case 5:
		number, end := uint32(s.next()&15), callwire.End{Keeps: true, Exec: time.Millisecond}
		a.write(func(b []byte) []byte { return end.Append(b, number) })
	case 6:
		s.call()
	case 7:
		a.credits(callwire.KindLend, uint32(s.next()))
	case 8:
		a.credits(callwire.KindTakeBack, uint32(s.next()))
	case 9:
		a.conn.Close()
		s.agents[op>>7] = s.connect()
	case 10:
		kind, flags, number := callwire.Kind(s.next()), s.next(), uint32(s.next()&15)
		n := min(int(s.next()&15), len(s.data))
		payload := s.data[:n]
		s.data = s.data[n:]
		if kind == callwire.KindRelease && !s.leaves(a, number) {
			return
		}
		a.write(func(b []byte) []byte {
			return callwire.AppendFrame(b, kind, flags, number, func(b []byte) []byte { return append(b, payload...) })
		})
	default:
		number, part := uint32(s.next()&15), make([]byte, int(s.next())<<4)
		a.write(func(b []byte) []byte { return callwire.AppendBody(b, number, part) })
	}
}

// answer sends a head for one of the calls.
func (a *framesAgent) answer(s *framesScript, head *callwire.Head) {
	number := uint32(s.next() & 15)
	a.write(func(b []byte) []byte { return head.Append(b, number) })
}

// check checks what a client was answered.
func (s *framesScript) check(a answer) {
	if a.err != nil {
		return // it was cut off, or not answered until the end
	}
	id, err := invocation.ParseID(a.header.Get(invocation.HeaderInvocationID))
	if err != nil {
		s.Fatalf("answered %d, %v", a.status, a.header)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.header.Get(invocation.HeaderExecuted) == string(invocation.ExecutedNo) && s.granted[id] > s.released[id] {
		s.Errorf("answered %d, and said that it did not run", a.status)
	}
}
