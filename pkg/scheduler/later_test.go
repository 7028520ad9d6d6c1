package scheduler

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/wiretest"
)

// FuzzLaterAgent has an agent say the same twice: as this release does, and as a later
// one would, with fields and members more. What it hears must be the same.
func FuzzLaterAgent(f *testing.F) {
	for _, request := range []*agentwire.PullRequest{
		{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: 1, Done: []*agentwire.Done{{InvocationId: idBytes(1), ExecNs: 5}}}}},
		{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: int64(time.Minute)}}},
		{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{Reason: agentwire.Goodbye_REASON_DONE}}},
		{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{EveryNs: int64(time.Second), Report: &agentwire.AgentReport{Calls: 3}}}},
	} {
		text, err := proto.Marshal(request)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		request := &agentwire.PullRequest{}
		if proto.Unmarshal(text, request) != nil || request.GetHello() != nil {
			return
		}
		plain, plainEnded := listens(t, func(a *agent) { a.send(request) })
		later, laterEnded := listens(t, func(a *agent) {
			a.send(wiretest.Beyond(&agentwire.PullRequest{}))
			a.send(wiretest.Newer(request))
			a.send(wiretest.Beyond(&agentwire.PullRequest{}))
		})
		if !slices.Equal(plain, later) || plainEnded != laterEnded {
			t.Errorf("a later agent heard %q, ended %v; one of this release %q, ended %v", later, laterEnded, plain, plainEnded)
		}
	})
}

// listens is what an agent hears that has a call and says something, while another call
// waits.
func listens(t *testing.T, says func(*agent)) (heard []string, ended bool) {
	t.Helper()
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		g.offer(fn, 1, 2)
		says(a)
		w.after(time.Second)
		heard = a.heard()
		a.mu.Lock()
		ended = a.ended
		a.mu.Unlock()
		a.cut()
	})
	return heard, ended
}

func TestTicketsOfALaterGatewayAreHandedOut(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		g := w.offering(wiretest.Newer(&controlwire.OfferRequest{Gateway: "g:1", Hello: &controlwire.Hello{
			ProtocolMin: 1, ProtocolMax: 9, Features: []string{"made-up"},
		}}))
		w.ticks(1)
		a := w.ready(w.started(fn, 1)[0])
		id := idOf(1)
		_ = g.stream.Send(wiretest.Newer(&controlwire.OfferRequest{Offers: []*agentwire.Ticket{{
			InvocationId: id[:], FunctionUid: string(fn.UID), Token: make([]byte, 16), RemainingNs: int64(time.Minute),
		}}}))
		w.after(time.Second)
		a.expect("ticket 0001 at g:1")
	})
}
