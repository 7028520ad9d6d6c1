package attacks

import (
	"crypto/rand"
	"errors"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// guesses is how many tokens are guessed; WINDLASS_GUESSES says otherwise.
const guesses = 5_000

// perConnection is more than what one connection may guess.
const perConnection = 100

func wrong(t *agentwire.Ticket, change func(*agentwire.Ticket)) *agentwire.Ticket {
	forged := proto.Clone(t).(*agentwire.Ticket)
	change(forged)
	return forged
}

func (w *platform) refusesClaim(t *agentwire.Ticket) {
	w.Helper()
	if a, err := w.toGateway().claim(t); err != nil || a != nil {
		w.Errorf("claimed %v, %v", a, err)
	}
}

var claimAttacks = []attack{
	{"F82", "a claim with a guessed and no token", wrongToken, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		for _, token := range [][]byte{make([]byte, 16), nil} {
			w.refusesClaim(wrong(ticket, func(t *agentwire.Ticket) { t.Token = token }))
		}
		w.answers(ticket, responses)
	}},
	{"F82", "a claim with a short and a long token, and of a short call", invalid, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		for _, forged := range []*agentwire.Ticket{
			wrong(ticket, func(t *agentwire.Ticket) { t.Token = t.GetToken()[:15] }), wrong(ticket, func(t *agentwire.Ticket) { t.Token = append(t.GetToken(), 0) }),
			wrong(ticket, func(t *agentwire.Ticket) { t.InvocationId = t.GetInvocationId()[:8] }),
		} {
			if a, err := w.toGateway().claim(forged); err == nil || a != nil {
				w.Errorf("claimed %v", a)
			}
		}
		w.answers(ticket, responses)
	}},
	{"F82", "guessed tokens", wrongToken, guessTokens},
	{"F82", "claims of calls that do not exist", notWaiting, func(w *platform) {
		for range 5 {
			c := w.toGateway()
			for range 100 {
				if a, err := c.claim(&agentwire.Ticket{InvocationId: newID(), Token: newID()}); err != nil || a != nil {
					w.Fatalf("claimed %v, %v", a, err)
				}
			}
		}
	}},
	{"F82", "claims of calls that do not exist, without end", tooMuch, func(w *platform) {
		c := w.toGateway()
		for n := 0; ; n++ {
			a, err := c.claim(&agentwire.Ticket{InvocationId: newID(), Token: newID()})
			if a != nil || n > 2_000 {
				w.Fatalf("claimed %v after %d claims", a, n)
			}
			if err != nil {
				return
			}
		}
	}},
	{"F82", "a ticket that was used before", notWaiting, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		w.answers(ticket, responses)
		w.refusesClaim(ticket)
	}},
	{"F82", "a ticket that another has claimed", notWaiting, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		w.refusesClaim(ticket)
		a.send(whole(200, nil))
		if r := receive(w.T, responses, "the answer"); r.status != 200 {
			w.Errorf("answered %d", r.status)
		}
	}},
	{"F82", "a ticket of before a release", notWaiting, func(w *platform) {
		ticket, pulls, responses := w.ticketOfEvil()
		w.claims(ticket).send(release(callwire.Release{Reason: marker}))
		_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: ticket.GetInvocationId()}))
		again, err := nextTicket(pulls)
		if err != nil {
			w.Fatal(err)
		}
		w.refusesClaim(ticket)
		w.answers(again, responses)
	}},
	{"F82", "frames that only a gateway, or an agent with a claim, may send", invalid, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		good := callwire.Claim{Invocation: invocation.ID(ticket.GetInvocationId()), Token: invocation.Token(ticket.GetToken())}
		for name, frame := range map[string][]byte{
			"a claim with an even number": callwire.AppendClaim(nil, 2, good),
			"a claim that is cut off":     callwire.AppendFrame(nil, callwire.KindClaim, 0, 1, func(b []byte) []byte { return append(b, 16, 1) }),
			"credits that nobody lent":    callwire.AppendCount(nil, callwire.KindLend, 0, 1<<31),
			"credits that are taken back": callwire.AppendCount(nil, callwire.KindTakeBack, 0, 1<<31),
			"a call":                      (&callwire.Call{}).Append(nil, 2),
			"a second hello":              (&callwire.Hello{}).Append(nil),
			"a cancellation":              callwire.AppendFrame(nil, callwire.KindCancel, 0, 1, nil),
			"a frame of more than 16 KiB": callwire.AppendBody(nil, 1, make([]byte, callwire.MaxFirst+1)),
			"a frame of 4 GiB":            {255, 255, 255, 255, byte(callwire.KindHead), 0, 0, 0, 0, 0, 0, 1},
		} {
			c := w.toGateway()
			c.wire.Commit(append(c.wire.Begin(), frame...))
			if err := c.ends(); errors.Is(err, callwire.ErrSilent) {
				w.Errorf("%s: the connection goes on", name)
			}
		}
		w.answers(ticket, responses)
	}},
	{"F82", "a result without a claim, and of another's call", "", func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		other := w.toGateway()
		for number := range uint32(8) {
			for _, m := range []message{whole(200, []byte(marker)), end(callwire.End{Keeps: true}), release(callwire.Release{Keeps: true}), body([]byte(marker))} {
				other.wire.Commit(m(other.wire.Begin(), number))
			}
		}
		other.goesOn()
		a.send(whole(200, []byte("good")))
		if r := receive(w.T, responses, "the answer"); r.status != 200 || r.body != "good" {
			w.Errorf("answered %d: %s", r.status, r.body)
		}
	}},
	{"F82", "a result that comes too late", "", func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		if r := receive(w.T, responses, "the answer"); r.status != 504 || r.header.Get("Windlass-Executed") != "maybe" {
			w.Errorf("answered %d", r.status)
		}
		a.send(whole(200, []byte(marker)))
		a.send(whole(200, []byte(marker)))
		a.goesOn()
	}},
	{"F82", "a body before the head", invalid, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		a.send(body([]byte(marker)))
		if r := receive(w.T, responses, "the answer"); r.status != 502 || strings.Contains(r.body, marker) {
			w.Errorf("answered %d: %s", r.status, r.body)
		}
		if err := a.ends(); errors.Is(err, callwire.ErrSilent) {
			w.Error("the connection goes on")
		}
	}},
	{"F82", "a second head", "", func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		a.send(whole(200, []byte("good")), whole(200, []byte(marker)))
		if r := receive(w.T, responses, "the answer"); r.status != 200 || r.body != "good" {
			w.Errorf("answered %d: %s", r.status, r.body)
		}
		a.goesOn()
	}},
	{"F82", "a second head of an answer that goes on", invalid, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		start := head(callwire.Head{Status: 200, ContentLength: -1})
		a.send(start, start)
		if r := receive(w.T, responses, "the answer"); r.err == nil {
			w.Errorf("answered %d: %s", r.status, r.body)
		}
		if err := a.ends(); errors.Is(err, callwire.ErrSilent) {
			w.Error("the connection goes on")
		}
	}},
	{"F86", "a hello of 1 MiB, which is not read", invalid, func(w *platform) {
		c := w.connected()
		if took := c.says((&callwire.Hello{CID: marker + strings.Repeat("A", 1<<20)}).Append(nil)); took > patience/3 {
			w.Errorf("it took %v", took)
		}
	}},
}

// answers claims a ticket as its owner, and answers it.
func (w *platform) answers(ticket *agentwire.Ticket, responses <-chan response) {
	w.Helper()
	a := w.claims(ticket)
	defer a.close()
	a.send(whole(200, []byte("good")))
	if r := receive(w.T, responses, "the answer"); r.status != 200 || r.body != "good" {
		w.Errorf("answered %d: %s", r.status, r.body)
	}
}

// guessTokens guesses the token of a call that waits. Its connections are ended.
func guessTokens(w *platform) {
	n := guesses
	if said := os.Getenv("WINDLASS_GUESSES"); said != "" {
		var err error
		if n, err = strconv.Atoi(said); err != nil {
			w.Fatal(err)
		}
	}
	ticket, pulls, responses := w.ticketOfEvil()
	var made, connections int
	heap := liveHeap()
	for made < n {
		answered, cut := w.guessUntilCut(ticket, min(n-made, perConnection))
		made += answered
		connections++
		select {
		case <-responses: // the call has waited for long enough
			_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: ticket.GetInvocationId()}))
			go func() { responses <- w.call("/function/evil.shop/") }()
			var err error
			if ticket, err = nextTicket(pulls); err != nil {
				w.Fatal(err)
			}
		default:
			if !cut && answered == perConnection {
				w.Errorf("%d guesses on one connection", answered)
			}
		}
	}
	if grown := int64(liveHeap()) - int64(heap); grown > 64<<20 {
		w.Errorf("%d guesses left %d bytes behind", made, grown)
	}
	w.Logf("guessed=%d granted=0 connections_ended=%d", made, connections)
}

// guessUntilCut guesses at most n times on one connection. It tells how often it
// was answered, and whether the connection was ended for it.
func (w *platform) guessUntilCut(ticket *agentwire.Ticket, n int) (answered int, cut bool) {
	w.Helper()
	c := w.toGateway()
	defer c.close()
	for answered < n {
		token := make([]byte, 16)
		_, _ = rand.Read(token)
		a, err := c.claim(wrong(ticket, func(t *agentwire.Ticket) { t.Token = token }))
		switch {
		case a != nil:
			w.Fatal("a guess was granted")
		case err != nil:
			return max(answered, 1), true // the last answer may be cut off too
		}
		answered++
	}
	return answered, false
}

// liveHeap is the number of bytes that a collection leaves.
func liveHeap() uint64 {
	debug.FreeOSMemory()
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
