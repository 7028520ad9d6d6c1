package scheduler

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
)

// chaosAgent is an instance that works well most of the time.
type chaosAgent struct {
	c    *chaos
	spec provisioner.InstanceSpec
	key  provisioner.Key
	rand *rand.Rand
	// ended is closed when the runtime has ended the instance, and finished
	// takes the calls that ended.
	ended    chan struct{}
	finished chan invocation.ID

	running int
	leaving bool
	stream  grpc.BidiStreamingClient[agentwire.PullRequest, agentwire.PullReply]
}

func newChaosAgent(c *chaos, spec provisioner.InstanceSpec, r *rand.Rand) *chaosAgent {
	a := &chaosAgent{c: c, spec: spec, key: keyOf(string(spec.Function.UID), spec.CID), rand: r}
	a.finished = make(chan invocation.ID, spec.Function.Spec.Template.Concurrency)
	c.runtime.mu.Lock()
	defer c.runtime.mu.Unlock()
	a.ended = c.runtime.alive[a.key] // nil if it has ended already
	return a
}

// bad tells whether something bad happens that does so in so many of 100 cases.
func (a *chaosAgent) bad(percent int) bool { return !a.c.calm.Load() && a.rand.IntN(100) < percent }

// pause waits for up to most; false if the instance ended.
func (a *chaosAgent) pause(most time.Duration) bool {
	select {
	case <-a.ended:
		return false
	case <-time.After(time.Duration(a.rand.Int64N(int64(most)))):
		return true
	}
}

// live starts, serves as long as it may, and exits.
func (a *chaosAgent) live() {
	if a.ended == nil || !a.pause(400*time.Millisecond) {
		return
	}
	reason := "exited"
	if a.bad(15) {
		reason = "failed"
	} else {
		for a.session() && a.pause(200*time.Millisecond) {
		}
	}
	a.c.runtime.end(a.key, reason)
	for ; a.running > 0; a.running-- {
		<-a.finished
	}
}

// session serves on one stream; false if there must be no other.
func (a *chaosAgent) session() (again bool) {
	ctx, cut := context.WithCancel(context.Background())
	defer cut()
	var err error
	if a.stream, err = a.c.client.Pull(ctx); err != nil {
		a.c.t.Error(err)
		return false
	}
	replies, broken := make(chan *agentwire.PullReply, 16), make(chan error, 1)
	go recvAll(a.stream.Recv, func(r *agentwire.PullReply) {
		select {
		case replies <- r:
		case <-ctx.Done():
		}
	}, func(err error) { broken <- err })
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{
		FunctionUid: a.key.FunctionUID, Revision: a.spec.Function.Revision(),
		Cid: string(a.key.CID), Token: a.spec.Token,
	}}})
	if !a.leaving {
		a.ask(a.concurrency() - a.running)
	}
	mood := time.NewTicker(300 * time.Millisecond)
	defer mood.Stop()
	for !a.leaving || a.running > 0 {
		select {
		case <-a.ended:
			return false
		case err := <-broken:
			code := status.Code(err)
			return code != codes.NotFound && code != codes.Unauthenticated
		case reply := <-replies:
			if reply.GetMoved() != nil {
				return true
			}
			a.hear(reply)
		case id := <-a.finished:
			a.running--
			if !a.leaving {
				a.ask(1, &agentwire.Done{InvocationId: id[:], ExecNs: int64(50 * time.Millisecond)})
			}
		case <-mood.C:
			switch {
			case a.bad(4):
				return false // a crash
			case a.bad(4):
				return true // a broken connection
			case a.bad(4):
				a.leave(agentwire.Goodbye_REASON_STOPPED)
			case a.running == 0 && a.rand.IntN(4) == 0:
				a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Leave{Leave: &agentwire.LeaveRequest{IdleNs: int64(3 * time.Second)}}})
			}
		}
	}
	_ = a.stream.CloseSend()
	<-broken
	return false
}

func (a *chaosAgent) concurrency() int { return int(a.spec.Function.Spec.Template.Concurrency) }

func (a *chaosAgent) send(request *agentwire.PullRequest) { _ = a.stream.Send(request) }

func (a *chaosAgent) ask(credits int, done ...*agentwire.Done) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Pull{Pull: &agentwire.Pull{Credits: uint32(credits), Done: done}}})
}

func (a *chaosAgent) leave(reason agentwire.Goodbye_Reason) {
	a.leaving = true
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{Reason: reason}}})
}

func (a *chaosAgent) hear(reply *agentwire.PullReply) {
	switch kind := reply.GetKind().(type) {
	case *agentwire.PullReply_Drain:
		if !a.leaving {
			a.leave(agentwire.Goodbye_REASON_DONE)
		}
	case *agentwire.PullReply_Leave:
		a.leaving = a.leaving || kind.Leave.GetGranted()
	case *agentwire.PullReply_Ticket:
		if a.leaving {
			return
		}
		if a.running++; a.running > a.concurrency() {
			a.c.t.Errorf("%s was handed more than it asked for", a.key.CID)
		}
		a.run(invocation.ID(kind.Ticket.GetInvocationId()))
	}
}

// run claims and runs one call; what becomes of it is heard of by finished.
func (a *chaosAgent) run(id invocation.ID) {
	var took time.Duration
	if !a.bad(3) && a.c.claim(id) {
		took = time.Duration(a.rand.Int64N(int64(300 * time.Millisecond)))
	}
	time.AfterFunc(took, func() { a.finished <- id })
}
