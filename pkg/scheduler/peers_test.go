package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// gateway is a fake gateway on a stream of its own.
type gateway struct {
	t      testing.TB
	stream grpc.BidiStreamingClient[controlwire.OfferRequest, controlwire.OfferReply]
	hangUp context.CancelFunc

	mu       sync.Mutex
	refusals []*controlwire.Refusal
}

func (w *harness) gateway(addr string) *gateway {
	w.t.Helper()
	return w.offering(&controlwire.OfferRequest{Gateway: addr})
}

// forwarding is another scheduler that passes on tickets of a gateway.
func (w *harness) forwarding(addr string) *gateway {
	w.t.Helper()
	return w.offering(&controlwire.OfferRequest{Gateway: addr, Forwarded: true})
}

func (w *harness) offering(first *controlwire.OfferRequest) *gateway {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := w.client.Offer(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	g := &gateway{t: w.t, stream: stream, hangUp: cancel}
	g.send(first)
	go recvAll(stream.Recv, func(r *controlwire.OfferReply) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refusals = append(g.refusals, r.GetRefusals()...)
	}, func(error) { cancel() })
	synctest.Wait()
	return g
}

func (g *gateway) send(request *controlwire.OfferRequest) {
	g.t.Helper()
	if err := g.stream.Send(request); err != nil {
		g.t.Error(err)
	}
}

// offer offers tickets of a function that have a minute.
func (g *gateway) offer(fn *v1alpha1.Function, ids ...int) {
	g.t.Helper()
	g.offerFor(fn, time.Minute, ids...)
}

func (g *gateway) offerFor(fn *v1alpha1.Function, remaining time.Duration, ids ...int) {
	g.t.Helper()
	request := &controlwire.OfferRequest{}
	for _, n := range ids {
		id := idOf(n)
		request.Offers = append(request.Offers, &agentwire.Ticket{
			InvocationId: id[:], FunctionUid: string(fn.UID), Token: id[:], RemainingNs: int64(remaining),
		})
	}
	g.send(request)
	synctest.Wait()
}

// report reports on a function.
func (g *gateway) report(fn *v1alpha1.Function, r *controlwire.LoanReport) {
	g.t.Helper()
	r.FunctionUid = string(fn.UID)
	g.send(&controlwire.OfferRequest{Reports: []*controlwire.LoanReport{r}})
	synctest.Wait()
}

func (g *gateway) cancel(fn *v1alpha1.Function, n int) {
	g.t.Helper()
	id := idOf(n)
	g.send(&controlwire.OfferRequest{Cancellations: []*controlwire.Cancellation{{InvocationId: id[:], FunctionUid: string(fn.UID)}}})
	synctest.Wait()
}

// refused returns the refusals since the last call.
func (g *gateway) refused() []*controlwire.Refusal {
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	refusals := g.refusals
	g.refusals = nil
	return refusals
}

// expectRefused expects refusals of these tickets since the last call, in this
// order, for one reason, and returns the last.
func (g *gateway) expectRefused(reason controlwire.Refusal_Reason, ids ...int) *controlwire.Refusal {
	g.t.Helper()
	var got, want []string
	last := &controlwire.Refusal{}
	for _, r := range g.refused() {
		got = append(got, fmt.Sprintf("%s %s", r.GetInvocationId(), r.GetReason()))
		if r.GetFunctionUid() == "" {
			g.t.Errorf("the refusal of %s does not name the ticket's unit", r.GetInvocationId())
		}
		last = r
	}
	for _, n := range ids {
		id := idOf(n)
		want = append(want, fmt.Sprintf("%s %s", id[:], reason))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		g.t.Errorf("refused (-want +got):\n%s", diff)
	}
	return last
}

// agent is a fake agent on a stream of its own. Its function is ready at once.
type agent struct {
	w      *harness
	key    provisioner.Key
	stream grpc.BidiStreamingClient[agentwire.PullRequest, agentwire.PullReply]
	hangUp context.CancelFunc

	mu    sync.Mutex
	said  []string // what the scheduler said since the last look
	keeps []bool   // whether it keeps the place, for each ticket
	ended bool
	err   error
	// assignment and welcome are the last that it got.
	assignment *agentwire.Assignment
	welcome    *agentwire.Welcome
}

// hello opens a stream for an instance and says hello.
func (w *harness) hello(spec provisioner.InstanceSpec) *agent {
	w.t.Helper()
	return w.connectHello(&agentwire.Hello{
		FunctionUid: string(spec.Function.UID), Revision: spec.Function.Revision(),
		Cid: string(spec.CID), Token: spec.Token,
	})
}

func (w *harness) connectHello(hello *agentwire.Hello) *agent {
	w.t.Helper()
	a := w.connect(hello)
	synctest.Wait()
	return a
}

// connect is hello without waiting for what comes of it.
func (w *harness) connect(hello *agentwire.Hello) *agent {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := w.client.Pull(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	a := &agent{w: w, stream: stream, hangUp: cancel, key: keyOf(hello.GetFunctionUid(), invocation.CID(hello.GetCid()))}
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: hello}})
	go recvAll(stream.Recv, a.hear, func(err error) {
		cancel()
		a.mu.Lock()
		defer a.mu.Unlock()
		a.ended, a.err = true, err
	})
	return a
}

// ready greets and asks for all that the instance can take.
func (w *harness) ready(spec provisioner.InstanceSpec) *agent {
	w.t.Helper()
	a := w.hello(spec)
	a.pull(spec.Function.Spec.Template.Concurrency)
	return a
}

func (a *agent) hear(reply *agentwire.PullReply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch kind := reply.GetKind().(type) {
	case *agentwire.PullReply_Ticket:
		a.said = append(a.said, "ticket "+string(kind.Ticket.GetInvocationId()[12:])+" at "+kind.Ticket.GetGateway())
		a.keeps = append(a.keeps, kind.Ticket.GetLent())
	case *agentwire.PullReply_Recall:
		words := fmt.Sprintf("recall %d from %s", kind.Recall.GetCalls(), kind.Recall.GetGateway())
		if term := kind.Recall.GetTermNs(); term > 0 {
			words += fmt.Sprint(" in ", time.Duration(term))
		}
		a.said = append(a.said, words)
	case *agentwire.PullReply_Welcome:
		a.welcome = kind.Welcome
	case *agentwire.PullReply_Moved:
		a.said = append(a.said, "moved to "+kind.Moved.GetAddress())
	case *agentwire.PullReply_Drain:
		a.said = append(a.said, "retire: "+kind.Drain.GetDetail())
	case *agentwire.PullReply_Ended:
		a.said = append(a.said, fmt.Sprintf("ended: %s %q", kind.Ended.GetHow(), kind.Ended.GetLastLines()))
	case *agentwire.PullReply_Assignment:
		a.said = append(a.said, "assigned to "+kind.Assignment.GetFunction()+" as "+kind.Assignment.GetCid())
		a.assignment = kind.Assignment
	case *agentwire.PullReply_Leave:
		a.said = append(a.said, fmt.Sprintf("leave: %v, ask again in %v", kind.Leave.GetGranted(), time.Duration(kind.Leave.GetAskAgainNs())))
	}
}

// send ignores errors: a stream that has ended says so by Recv.
func (a *agent) send(request *agentwire.PullRequest) { _ = a.stream.Send(request) }

func (a *agent) pull(credits int32, done ...*agentwire.Done) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: uint32(credits), Done: done}}})
	synctest.Wait()
}

// lend is pull of an agent that has lent places.
func (a *agent) lend(credits int32, loans []*agentwire.Loan, idle time.Duration, done ...*agentwire.Done) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{
		Credits: uint32(credits), Loans: loans, IdleNs: int64(idle), Done: done,
	}}})
	synctest.Wait()
}

func lentTo(gateway string, calls uint32) []*agentwire.Loan {
	return []*agentwire.Loan{{Gateway: gateway, Calls: calls}}
}

func doneWith(n int, execution time.Duration) *agentwire.Done {
	id := idOf(n)
	return &agentwire.Done{InvocationId: id[:], ExecNs: int64(execution)}
}

func (a *agent) askToLeave(idle time.Duration) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: int64(idle)}}})
	synctest.Wait()
}

func (a *agent) goodbye(reason agentwire.Goodbye_Reason, detail string) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{Reason: reason, Detail: detail}}})
	synctest.Wait()
}

// closeSend ends the stream as an agent does that has finished.
func (a *agent) closeSend() {
	_ = a.stream.CloseSend()
	synctest.Wait()
}

// cut ends the stream as a broken connection does.
func (a *agent) cut() {
	a.hangUp()
	synctest.Wait()
}

// die ends the instance as a crash does: the connection breaks and the process
// exits.
func (a *agent) die() {
	a.hangUp()
	a.w.runtime.end(a.key, "killed")
	synctest.Wait()
}

// heard returns what the scheduler said since the last call.
func (a *agent) heard() []string {
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	said := a.said
	a.said = nil
	return said
}

func (a *agent) expect(want ...string) {
	a.w.t.Helper()
	if diff := cmp.Diff(want, a.heard()); diff != "" {
		a.w.t.Errorf("%s heard (-want +got):\n%s", a.key.CID, diff)
	}
}

func (a *agent) expectEnded(code codes.Code) {
	a.w.t.Helper()
	synctest.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended || status.Code(a.err) != code {
		a.w.t.Errorf("the stream of %s: ended %v with %v, want %v", a.key.CID, a.ended, a.err, code)
	}
}
