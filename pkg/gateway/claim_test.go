package gateway_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

func TestAClaimNeedsTheTicketsToken(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	for name, token := range map[string][]byte{"another token": make([]byte, 16), "no token": nil, "a token that is cut off": ticket.GetToken()[:15]} {
		forged := &agentwire.Ticket{InvocationId: ticket.GetInvocationId(), Token: token}
		if got := w.claim(forged).refused; got != callwire.RefusedBadToken {
			t.Errorf("%s: %v", name, got)
		}
	}
	i := w.claim(ticket)
	if i.granted == nil || i.granted.Attempt != 1 {
		t.Fatalf("granted %v, refused %v", i.granted, i.refused)
	}
	if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("second claim: %v", got)
	}
	i.whole(200, "hi")
	if a := wrote(t, answers, 200, invocation.ExecutedYes); a.body != "hi" {
		t.Errorf("answered %q", a.body)
	}
	i.ended()
	if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("claim after the end: %v", got)
	}
}

func TestAConnectionThatMakesNoSenseIsEnded(t *testing.T) {
	var call callwire.Call
	frame := func(kind callwire.Kind, number uint32, payload ...byte) func([]byte) []byte {
		return func(b []byte) []byte {
			return callwire.AppendFrame(b, kind, 0, number, func(b []byte) []byte { return append(b, payload...) })
		}
	}
	for name, add := range map[string]func([]byte) []byte{
		"a second hello":              (&callwire.Hello{CID: "1"}).Append,
		"a welcome":                   frame(callwire.KindWelcome, 0),
		"a call":                      func(b []byte) []byte { return call.Append(b, 2) },
		"a refusal":                   frame(callwire.KindRefused, 1),
		"a claim with a short id":     frame(callwire.KindClaim, 1, 1, 'x'),
		"a claim with a long token":   frame(callwire.KindClaim, 1, slices.Concat([]byte{16}, make([]byte, 16), []byte{17}, make([]byte, 17))...),
		"a claim with an even number": frame(callwire.KindClaim, 2, 0, 0),
		"credits without a claim":     frame(callwire.KindLend, 0, 1),
		"a frame that is too large":   func(b []byte) []byte { return binary.BigEndian.AppendUint32(b, callwire.MaxPayload+1) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newHarness(t).agentOf(firstCID)
			a.write(add)
			if name == "a frame that is too large" {
				a.write(func(b []byte) []byte { return append(b, make([]byte, 8)...) })
			}
			a.broken()
		})
	}
}

func TestAConnectionThatDoesNotBeginWithAHelloIsEnded(t *testing.T) {
	for name, first := range map[string][]byte{
		"a claim":            callwire.AppendClaim(nil, 1, callwire.Claim{}),
		"a large hello":      (&callwire.Hello{CID: strings.Repeat("x", callwire.MaxFirst)}).Append(nil),
		"what is no frame":   []byte("GET / HTTP/1.1\r\n\r\n"),
		"a hello cut off":    callwire.AppendFrame(nil, callwire.KindHello, 0, 0, func(b []byte) []byte { return append(b, 9, 'x') }),
		"another's protocol": (&callwire.Hello{CID: firstCID, ProtocolMin: 1000, ProtocolMax: 1001}).Append(nil),
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			conn, err := net.Dial("tcp", w.wireAddr)
			if err != nil {
				t.Fatal(err)
			}
			a := newAgent(t, conn)
			_, _ = conn.Write(first)
			f, err := a.readFrame()
			if welcome, _ := callwire.ParseWelcome(f); err == nil && (name != "another's protocol" || welcome.Protocol != 0) {
				t.Errorf("it heard %+v", f)
			}
			if _, err := a.readFrame(); err == nil {
				t.Error("the connection goes on")
			}
		})
	}
}

func TestAReleasedCallIsOfferedAgainAndAnswered(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.request("POST", "/function/hello/", bytes.NewBufferString("small")))
	first := w.scheduler.ticket()
	i := w.claim(first)
	i.release("the function ended")
	i.ended()
	second := w.scheduler.ticket()
	if bytes.Equal(first.GetToken(), second.GetToken()) || !bytes.Equal(first.GetInvocationId(), second.GetInvocationId()) {
		t.Fatalf("offered again as %v, was %v", second, first)
	}
	if !second.GetAgain() || second.GetWaitedNs() <= first.GetWaitedNs() || second.GetRemainingNs() >= first.GetRemainingNs() {
		t.Errorf("lost its place: waited %d then %d, remaining %d then %d", first.GetWaitedNs(), second.GetWaitedNs(), first.GetRemainingNs(), second.GetRemainingNs())
	}
	if got := w.claim(first).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("the old ticket: %v", got)
	}
	if got := w.metric("windlass_gateway_claims_refused_total", "reason", "WrongToken"); got != 0 {
		t.Errorf("%v tokens are wrong", got)
	}
	i = w.claim(second)
	if i.granted.Attempt != 2 || string(i.granted.Body) != "small" {
		t.Fatalf("second attempt: %v, %v", i.granted, i.refused)
	}
	i.whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	// What another queue may still hold of the call is called back.
	w.scheduler.cancelled(first)
}

// Schedulers take a ticket that was offered before for one that was let in before.
func TestANewTicketIsNotOfferedAgain(t *testing.T) {
	w := newHarness(t)
	for n := range 2 {
		answers := w.call(w.request("POST", "/function/hello/", bytes.NewBufferString("small")))
		ticket := w.scheduler.ticket()
		// The ticket of the first call may have had to wait for the stream.
		if n > 0 && ticket.GetAgain() {
			t.Error("the first offer of a call says that there was one before")
		}
		i := w.claim(ticket)
		i.whole(200, "hi")
		wrote(t, answers, 200, invocation.ExecutedYes)
		i.ended()
	}
}

// A release offers the released call only: however many wait, they are not
// offered again with it.
func TestAReleaseOffersNothingElse(t *testing.T) {
	w := newHarness(t)
	const waiting, releases = 20, core.MaxReleases - 1
	known := make(map[string]bool)
	for range waiting {
		ctx, cancel := context.WithCancel(t.Context())
		answers := w.call(w.get("/function/hello/").WithContext(ctx))
		t.Cleanup(func() { cancel(); receive(t, answers, "the end of the call") })
		for before := len(known); len(known) == before; {
			known[string(w.scheduler.ticket().GetInvocationId())] = true
		}
	}
	answers := w.call(w.get("/function/hello/released"))
	others, attempts := 0, 0
	for attempts <= releases {
		ticket := w.scheduler.ticket()
		if known[string(ticket.GetInvocationId())] {
			others++
			continue
		}
		i := w.claim(ticket)
		if attempts++; attempts > releases {
			i.whole(200, "")
		} else {
			i.release("")
		}
		i.ended()
	}
	wrote(t, answers, 200, invocation.ExecutedYes)
	// A few may have waited for so long that it was their turn.
	if others > 2*waiting {
		t.Errorf("%d releases offered %d other tickets", releases, others)
	}
}

func TestATicketThatNobodyClaimsIsOfferedAgain(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	lost := w.scheduler.ticket()
	again := w.scheduler.offered()
	for again.GetWaitedNs() < int64(time.Second) {
		// The first may also be offered twice, if it came while the
		// gateway connected to the scheduler.
		again = w.scheduler.offered()
	}
	if !bytes.Equal(lost.GetToken(), again.GetToken()) || !again.GetAgain() {
		t.Errorf("offered again: %v, was %v", again, lost)
	}
	// Both are tickets of one call: either is good, once.
	w.claim(lost).whole(200, "")
	wrote(t, answers, 200, invocation.ExecutedYes)
	if got := w.claim(again).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("the other ticket: %v", got)
	}
}

func TestWhatWaitsSurvivesARestartOfTheScheduler(t *testing.T) {
	w := newHarness(t)
	var answers []<-chan answer
	const calls = 5
	for range calls {
		answers = append(answers, w.call(w.get("/function/hello/")))
		w.scheduler.ticket()
	}
	w.scheduler.stop()
	answers = append(answers, w.call(w.get("/function/hello/")))
	w.scheduler.start()
	claimed := 0
	for claimed < calls+1 {
		if i := w.claim(w.scheduler.ticket()); i.granted != nil {
			claimed++
			i.whole(200, "")
		}
	}
	for _, a := range answers {
		wrote(t, a, 200, invocation.ExecutedYes)
	}
}

func TestAClientThatHangsUpWhileQueuedCostsNoInstance(t *testing.T) {
	eachProtocol(t, func(w *harness, client *http.Client) {
		ctx, cancel := context.WithCancel(w.Context())
		answers := w.callWith(client, w.get("/function/hello/").WithContext(ctx))
		ticket := w.scheduler.ticket()
		cancel()
		receive(w.T, answers, "the end of the call")
		w.scheduler.cancelled(ticket)
		if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
			w.Errorf("claim of a dead client's call: %v", got)
		}
	})
}

// A client that hangs up while its call is claimed leaves nothing to run for a
// next instance, if the first gives it back.
func TestACallThatIsReleasedAfterItsClientLeftIsNotOfferedAgain(t *testing.T) {
	w := newHarness(t)
	ctx, cancel := context.WithCancel(t.Context())
	answers := w.call(w.get("/function/hello/").WithContext(ctx))
	ticket := w.scheduler.ticket()
	i := w.claim(ticket)
	cancel()
	receive(t, answers, "the end of the call")
	until(t, "the gateway has noticed", func() bool { return w.metric("windlass_gateway_invocations_total") == 1 })
	i.release("")
	i.ended()
	w.scheduler.cancelled(ticket)
	// If it waited, it would be the token that is wrong.
	if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("it waits again: %v", got)
	}
}

// offered is a call and its ticket. On a busy machine, one that may not wait for long is
// over before the stream to the scheduler is open, and another is made.
func (w *harness) offered() (<-chan answer, *agentwire.Ticket) {
	w.Helper()
	for {
		answers := w.call(w.get("/function/hello/"))
		select {
		case ticket := <-w.scheduler.offers:
			return answers, ticket
		case a := <-answers:
			problem(w.T, a, "NoInstanceInTime")
		}
	}
}

func TestACallThatNoInstanceTakesInTimeIsNotRun(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = time.Second })
	answers, ticket := w.offered()
	problem(t, wrote(t, answers, 503, invocation.ExecutedNo), "NoInstanceInTime")
	w.scheduler.cancelled(ticket)
	if got := w.claim(ticket).refused; got != callwire.RefusedNotWaiting {
		t.Errorf("claim after the deadline: %v", got)
	}
}

// What a function says of its calls comes before what the gateway says of all.
func TestAFunctionSaysHowLongItsCallsMayWait(t *testing.T) {
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = time.Hour })
	fn := w.put("default", "hello", time.Minute).DeepCopy()
	fn.Spec.Calls.QueueTimeout = v1alpha1.Duration{Duration: time.Second}
	w.catalog.Put(rollout.Alone(fn))
	answers, ticket := w.offered()
	if wait := time.Duration(ticket.GetRemainingNs()); wait <= 0 || wait > time.Second {
		t.Errorf("the ticket says that the call waits for %v", wait)
	}
	problem(t, wrote(t, answers, 503, invocation.ExecutedNo), "NoInstanceInTime")
	w.scheduler.cancelled(ticket)
}

// The time to wait may pass while a call is claimed; given back after that, it
// is not to wait on.
func TestACallThatIsReleasedTooLateIsAnswered(t *testing.T) {
	t.Parallel()
	w := newHarness(t, func(c *gateway.Config) { c.MaxQueueTime = time.Second })
	answers, ticket := w.offered()
	i := w.claim(ticket)
	<-time.After(time.Duration(ticket.GetRemainingNs()))
	i.release("")
	problem(t, wrote(t, answers, 503, invocation.ExecutedNo), "NoInstanceInTime")
}

func TestWhatALaterAgentSaysDoesNotLoseTheCall(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	i := w.claim(w.scheduler.ticket())
	i.sendUnknown()
	i.sendLater(func(b []byte) []byte { return (&callwire.Head{Status: 200, ContentLength: -1}).Append(b, i.number) })
	i.sendUnknown()
	i.body("hi")
	i.sendLater(func(b []byte) []byte { return (&callwire.End{}).Append(b, i.number) })
	if a := wrote(t, answers, 200, invocation.ExecutedYes); a.body != "hi" {
		t.Errorf("answered %q", a.body)
	}
}

func TestACallIsNotGrantedToAnAgentThatIsNotUnderstood(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	later := w.hello(callwire.Hello{CID: firstCID, ProtocolMin: 1000, ProtocolMax: 1001})
	if later.welcome.Protocol != 0 {
		t.Errorf("it heard %+v", later.welcome)
	}
	later.broken()
	i := w.claim(ticket) // the call waits still
	if got := i.agent.welcome; got.Protocol != 1 || got.Resume == ([16]byte{}) {
		t.Errorf("the next agent heard %+v", got)
	}
	i.whole(200, "hi")
	wrote(t, answers, 200, invocation.ExecutedYes)
}

// Whatever a later scheduler refuses a call for, it was not run.
func TestARefusalForAReasonThatIsNotKnownSaysThatNothingRan(t *testing.T) {
	w := newHarness(t)
	answers := w.call(w.get("/function/hello/"))
	ticket := w.scheduler.ticket()
	w.scheduler.refuse(&controlwire.Refusal{InvocationId: ticket.GetInvocationId(), Reason: 1000})
	wrote(t, answers, http.StatusServiceUnavailable, invocation.ExecutedNo)
}
