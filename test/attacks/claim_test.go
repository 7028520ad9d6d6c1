package attacks

import (
	"context"
	"crypto/rand"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
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
	if _, granted, err := claim(w.asAgent(w.gateway), t); err != nil || granted != nil {
		w.Errorf("claimed %v, %v", granted, err)
	}
}

var claimAttacks = []attack{
	{"F82", "a claim with a guessed, a short, a long and no token", wrongToken, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		for _, token := range [][]byte{make([]byte, 16), ticket.GetToken()[:15], append(ticket.GetToken(), 0), nil} {
			w.refusesClaim(wrong(ticket, func(t *agentwire.Ticket) { t.Token = token }))
		}
		w.answers(ticket, responses)
	}},
	{"F82", "guessed tokens", wrongToken, guessTokens},
	{"F82", "claims of calls that do not exist", notWaiting, func(w *platform) {
		conn := w.asAgent(w.gateway)
		for range 1_000 {
			if _, granted, err := claim(conn, &agentwire.Ticket{InvocationId: newID(), Token: newID()}); err != nil || granted != nil {
				w.Fatalf("claimed %v, %v", granted, err)
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
		stream, granted, err := claim(w.asAgent(w.gateway), ticket)
		if granted == nil {
			w.Fatalf("not granted: %v", err)
		}
		w.refusesClaim(ticket)
		_ = stream.Send(whole(200, nil))
		if r := receive(w.T, responses, "the answer"); r.status != 200 {
			w.Errorf("answered %d", r.status)
		}
	}},
	{"F82", "a ticket of before a release", wrongToken, func(w *platform) {
		ticket, pulls, responses := w.ticketOfEvil()
		stream, granted, err := claim(w.asAgent(w.gateway), ticket)
		if granted == nil {
			w.Fatalf("not granted: %v", err)
		}
		_ = stream.Send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Release{Release: &agentwire.Release{Reason: marker}}})
		_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: ticket.GetInvocationId()}))
		again, err := nextTicket(pulls)
		if err != nil {
			w.Fatal(err)
		}
		w.refusesClaim(ticket)
		w.answers(again, responses)
	}},
	{"F82", "a result without a claim", invalid, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		for _, first := range []*agentwire.AttemptRequest{
			whole(200, []byte(marker)), {}, {Kind: &agentwire.AttemptRequest_End{End: &agentwire.ResultEnd{}}},
			{Kind: &agentwire.AttemptRequest_Claim{Claim: &agentwire.Claim{InvocationId: ticket.GetInvocationId()[:8], Token: ticket.GetToken()}}},
		} {
			stream, err := agentwire.NewGatewayClient(w.asAgent(w.gateway)).Attempt(context.Background())
			if err != nil {
				w.Fatal(err)
			}
			_ = stream.Send(first)
			if err := ends(w, stream.Recv); status.Code(err) != codes.InvalidArgument {
				w.Errorf("ended with %v", err)
			}
		}
		w.answers(ticket, responses)
	}},
	{"F82", "a result that comes too late", "", func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		stream, granted, err := claim(w.asAgent(w.gateway), ticket)
		if granted == nil {
			w.Fatalf("not granted: %v", err)
		}
		if r := receive(w.T, responses, "the answer"); r.status != 504 || r.header.Get("Windlass-Executed") != "maybe" {
			w.Errorf("answered %d", r.status)
		}
		_ = stream.Send(whole(200, []byte(marker)))
		_ = stream.CloseSend()
		for err = nil; err == nil; {
			_, err = stream.Recv()
		}
	}},
	{"F82", "a second head, and a body before the head", invalid, func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		stream, granted, err := claim(w.asAgent(w.gateway), ticket)
		if granted == nil {
			w.Fatalf("not granted: %v", err)
		}
		_ = stream.Send(&agentwire.AttemptRequest{Kind: &agentwire.AttemptRequest_Body{Body: []byte(marker)}})
		if r := receive(w.T, responses, "the answer"); r.status != 502 || strings.Contains(r.body, marker) {
			w.Errorf("answered %d: %s", r.status, r.body)
		}
		if err := ends(w, stream.Recv); status.Code(err) != codes.InvalidArgument {
			w.Errorf("ended with %v", err)
		}
	}},
	{"F86", "a first message of 1 MiB, which is not read", tooSlow, func(w *platform) {
		stream, err := agentwire.NewGatewayClient(w.asAgent(w.gateway)).Attempt(context.Background())
		if err != nil {
			w.Fatal(err)
		}
		_ = stream.Send(whole(200, make([]byte, 1<<20)))
		if err := ends(w, stream.Recv); status.Code(err) != codes.DeadlineExceeded {
			w.Errorf("ended with %v", err)
		}
	}},
}

// answers claims a ticket as its owner, and answers it.
func (w *platform) answers(ticket *agentwire.Ticket, responses <-chan response) {
	w.Helper()
	stream, granted, err := claim(w.asAgent(w.gateway), ticket)
	if granted == nil {
		w.Fatalf("the owner was not granted its call: %v", err)
	}
	_ = stream.Send(whole(200, []byte("good")))
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
	conn := w.connect(w.agent(w.gateway), w.gateway)
	defer func() { _ = conn.Close() }()
	for answered < n {
		token := make([]byte, 16)
		_, _ = rand.Read(token)
		_, granted, err := claim(conn, wrong(ticket, func(t *agentwire.Ticket) { t.Token = token }))
		switch {
		case granted != nil:
			w.Fatal("a guess was granted")
		case status.Code(err) == codes.Unavailable:
			return max(answered, 1), true // the last answer may be cut off too
		case err != nil:
			w.Fatal(err)
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
