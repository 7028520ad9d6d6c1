package podagent

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// fakeScheduler hands every stream to the test, which speaks for it.
type fakeScheduler struct {
	agentwire.UnimplementedInstancesServer
	streams chan *pulls
	// deaf is that of the streams to come.
	deaf bool
}

// pulls is the scheduler's end of one stream. What the agent says is kept until
// the test hears it.
type pulls struct {
	t      *testing.T
	stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]
	mu     sync.Mutex  // held to send
	deaf   atomic.Bool // answers nothing of itself
	pings  atomic.Int64
	report atomic.Pointer[agentwire.AgentReport] // the last one
	hello  atomic.Pointer[agentwire.Hello]
	said   chan string
	end    chan error // takes one
	dying  atomic.Bool
}

func (s *fakeScheduler) Pull(stream grpc.BidiStreamingServer[agentwire.PullRequest, agentwire.PullReply]) error {
	p := &pulls{stream: stream, said: make(chan string, 1000), end: make(chan error, 1)}
	p.deaf.Store(s.deaf)
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer close(p.said)
		for {
			msg, err := stream.Recv()
			if err == io.EOF {
				p.said <- "hung up"
			}
			if err != nil {
				return
			}
			p.hearOne(msg)
		}
	}()
	s.streams <- p
	select {
	case err := <-p.end:
		return err
	case <-received:
		if p.dying.Load() {
			return errGone
		}
		return nil
	case <-stream.Context().Done():
		return nil
	}
}

// hearOne answers what a scheduler answers of itself, and keeps the rest for the test.
func (p *pulls) hearOne(msg *agentwire.PullRequest) {
	var answer *agentwire.PullReply
	if hello := msg.GetHello(); hello != nil {
		p.hello.Store(hello)
		answer = &agentwire.PullReply{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Epoch: 1}}}
	}
	if msg.GetPing() != nil {
		p.pings.Add(1)
		p.report.Store(msg.GetPing().GetReport())
		answer = &agentwire.PullReply{Kind: &agentwire.PullReply_Pong{Pong: &agentwire.Pong{}}}
	} else {
		p.said <- tellPull(msg)
	}
	if answer != nil && !p.deaf.Load() {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.stream.Send(answer)
	}
}

func tellPull(msg *agentwire.PullRequest) string {
	switch kind := msg.GetKind().(type) {
	case *agentwire.PullRequest_Hello:
		h := kind.Hello
		if h.GetSpare() {
			return fmt.Sprintf("hello spare %q/%s %q %s", h.GetFunctionUid(), h.GetRevision(), h.GetCid(), h.GetToken())
		}
		return fmt.Sprintf("hello %s/%s %s %s", h.GetFunctionUid(), h.GetRevision(), h.GetCid(), h.GetToken())
	case *agentwire.PullRequest_Pull:
		text := fmt.Sprintf("pull %d", kind.Pull.GetCredits())
		for _, d := range kind.Pull.GetDone() {
			text += fmt.Sprintf(" done %s after %v", tellID(d.GetInvocationId()), time.Duration(d.GetExecNs()))
			if d.GetUnclaimed() {
				text += " unclaimed"
			}
		}
		for _, l := range kind.Pull.GetLoans() {
			text += fmt.Sprintf(" lent %s %d", l.GetGateway(), l.GetCalls())
		}
		if idle := time.Duration(kind.Pull.GetIdleNs()); idle > 0 {
			text += fmt.Sprintf(" idle %v", idle)
		}
		if kind.Pull.GetNodeBusy() {
			text += " busy"
		}
		if w := kind.Pull.GetCoreWait(); w != nil {
			text += fmt.Sprintf(" waits for a core since %v", time.Duration(w.GetWaitedNs()))
		}
		return text
	case *agentwire.PullRequest_Leave:
		return fmt.Sprintf("leave? idle for %v", time.Duration(kind.Leave.GetIdleNs()))
	case *agentwire.PullRequest_Goodbye:
		return "goodbye " + strings.TrimPrefix(kind.Goodbye.GetReason().String(), "REASON_") + ": " + kind.Goodbye.GetDetail()
	}
	return "nonsense"
}

const unclaimed = " unclaimed"

// hear expects the agent's next words, or a prefix of them.
func (p *pulls) hear(want ...string) {
	p.t.Helper()
	for _, want := range want {
		got, ok := <-p.said
		if !ok {
			p.t.Fatalf("the stream ended, want %q", want)
		}
		if !strings.HasPrefix(got, want) || strings.HasSuffix(got, unclaimed) != strings.HasSuffix(want, unclaimed) {
			p.t.Fatalf("heard %q, want %q", got, want)
		}
	}
}

// hearEnd expects that the stream ended and nothing more was said.
func (p *pulls) hearEnd() {
	p.t.Helper()
	if got, ok := <-p.said; ok {
		p.t.Fatalf("heard %q, want the end of the stream", got)
	}
}

// hearNothing expects that nothing was said that the test has not heard.
func (p *pulls) hearNothing() {
	p.t.Helper()
	select {
	case got, ok := <-p.said:
		p.t.Fatalf("heard %q (%v), want nothing", got, ok)
	default:
	}
}

func (p *pulls) say(reply *agentwire.PullReply) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stream.Send(reply); err != nil {
		p.t.Fatal(err)
	}
}

// idOf is the id of a test's name for it, and tellID that name.
func idOf(name string) []byte {
	var id [16]byte
	copy(id[:], name)
	return id[:]
}

func tellID(id []byte) string { return strings.TrimRight(string(id), "\x00") }

// ticket hands out tickets; their ids are what the gateway sees.
func (p *pulls) ticket(ids ...string) {
	p.t.Helper()
	for _, id := range ids {
		p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: &agentwire.Ticket{
			InvocationId: idOf(id), Gateway: "gateway:1", Token: idOf("token of " + id),
		}}})
	}
}

// lent hands out a ticket whose place stays with the gateway.
func (p *pulls) lent(id string) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Ticket{Ticket: &agentwire.Ticket{
		InvocationId: idOf(id), Gateway: "gateway:1", Token: idOf("token of " + id), Lent: true,
	}}})
}

// recall takes loans back.
func (p *pulls) recall(calls uint32) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Recall{Recall: &agentwire.Recall{Gateway: "gateway:1", Calls: calls}}})
}

func (p *pulls) mayLeave(granted bool, again time.Duration) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Leave{Leave: &agentwire.LeaveReply{Granted: granted, AskAgainNs: int64(again)}}})
}

func (p *pulls) retire(reason string) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Drain{Drain: &agentwire.Drain{Detail: reason}}})
}

// ends tells the agent how its function ended.
func (p *pulls) ends(how string, lastLines ...string) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Ended{Ended: &agentwire.Ended{How: how, LastLines: lastLines}}})
}

// moved sends the agent to another scheduler.
func (p *pulls) moved(to string) {
	p.t.Helper()
	p.say(&agentwire.PullReply{Kind: &agentwire.PullReply_Moved{Moved: &agentwire.Moved{Address: to}}})
}

var errGone = status.Error(codes.Unavailable, "the scheduler is gone")

// lose ends the stream as a scheduler that goes away does.
func (p *pulls) lose() { p.end <- errGone }

// fakeAdapter hands every call to the test, which is the function.
type fakeAdapter struct {
	ready chan error // takes one, what WaitReady returns
	calls chan *called
	// waits takes one, what WaitRuntime returns; assigned has what was assigned.
	waits    chan error
	assigned chan adapter.Assignment

	running, most atomic.Int64
}

// called is one call of the function.
type called struct {
	*adapter.Call
	ctx context.Context
	w   adapter.ResultWriter
	end chan error // takes one
}

func (f *fakeAdapter) WaitReady(ctx context.Context) error {
	select {
	case err := <-f.ready:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeAdapter) WaitRuntime(ctx context.Context) error {
	select {
	case err := <-f.waits:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fakeAdapter) Assign(to adapter.Assignment) error {
	f.assigned <- to
	return to.Validate()
}

func (f *fakeAdapter) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	f.most.Store(max(f.most.Load(), f.running.Add(1)))
	defer f.running.Add(-1)
	c := &called{Call: call, ctx: ctx, w: w, end: make(chan error, 1)}
	f.calls <- c
	return <-c.end
}

// answer writes a head and a body, and ends the call well unless a write fails.
func (c *called) answer(head adapter.Head, parts ...string) {
	err := c.w.WriteHead(head)
	for _, part := range parts {
		if err == nil {
			_, err = io.WriteString(c.w, part)
		}
	}
	c.end <- err
}

// hello is a small answer.
func (c *called) hello() { c.answer(adapter.Head{Status: 200, ContentLength: 5}, "hello") }
