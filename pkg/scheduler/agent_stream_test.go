package scheduler

import (
	"context"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

func (a *agent) ping(every time.Duration) {
	a.send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{EveryNs: int64(every)}}})
	synctest.Wait()
}

func TestHelloIsWelcomedWithTheEpochAndPingsAreAnswered(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stream, err := w.client.Pull(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, request := range []*agentwire.PullRequest{
			{Kind: &agentwire.PullRequest_Hello{Hello: &agentwire.Hello{FunctionUid: string(fn.UID), Cid: string(spec.CID), Token: spec.Token}}},
			{Kind: &agentwire.PullRequest_Ping{Ping: &agentwire.Ping{EveryNs: int64(time.Second)}}},
		} {
			if err := stream.Send(request); err != nil {
				t.Fatal(err)
			}
		}
		if reply, err := stream.Recv(); err != nil || reply.GetWelcome().GetEpoch() != 7 {
			t.Errorf("first %v, %v, want a welcome in epoch 7", reply, err)
		}
		if reply, err := stream.Recv(); err != nil || reply.GetPong() == nil {
			t.Errorf("then %v, %v, want a pong", reply, err)
		}
	})
}

func TestInstanceThatFallsSilentIsGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		every, after time.Duration
	}{
		"often":         {500 * time.Millisecond, 2 * time.Second},
		"seldom":        {5 * time.Second, 20 * time.Second},
		"all the time":  {1, core.SilenceLimit(0)},
		"next to never": {1 << 62, core.MaxSilence},
		"nonsense":      {-1, core.SilenceLimit(0)},
	} {
		t.Run(name, func(t *testing.T) {
			inHarness(t, defaults(), func(w *harness) {
				fn, g := w.put("f", minInstances(1), maxInstances(1)), w.gateway("g:1")
				w.ticks(1)
				a := w.ready(w.started(fn, 1)[0])
				w.after(time.Millisecond) // what is to happen happens between ticks
				a.ping(tc.every)
				w.after(tc.after / 2)
				g.offer(fn, 1)
				a.expect("ticket 0001 at g:1")
				a.pull(1, doneWith(1, 0)) // which is a sign of life
				w.after(tc.after - time.Millisecond)
				w.expectCounts(fn, provisioner.Counts{Created: 1})
				w.after(time.Millisecond)
				a.expectEnded(codes.Unavailable)
				w.expectLog("closing the stream of an instance", "silent for too long", "function=ns/f")
				w.expectCounts(fn, provisioner.Counts{Leaving: 1, Disconnected: 1})
			})
		})
	}
}

func TestNewestStreamOfAnInstanceCounts(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn, g := w.put("f", minInstances(1), maxInstances(1)), w.gateway("g:1")
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
		b := w.ready(spec) // its connection was lost, which only it knows
		a.expectEnded(codes.Aborted)
		b.expect("ticket 0001 at g:1")
		forged := &agentwire.Hello{FunctionUid: string(fn.UID), Cid: string(spec.CID), Token: "guessed"}
		w.connectHello(forged).expectEnded(codes.Unauthenticated)
		b.pull(1, doneWith(1, 0))
		g.offer(fn, 2)
		b.expect("ticket 0002 at g:1")
	})
}

func TestManyStreamsOfAnInstanceLeaveOne(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		fn := w.put("f", minInstances(1), maxInstances(1))
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		var agents []*agent
		for range 50 {
			agents = append(agents, w.connect(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: string(spec.CID), Token: spec.Token}))
		}
		synctest.Wait()
		alive := 0
		for _, a := range agents {
			a.mu.Lock()
			if !a.ended {
				alive++
			}
			a.mu.Unlock()
		}
		if alive != 1 {
			t.Errorf("%d streams are left, want 1", alive)
		}
		if n := len(w.scheduler.shell.streams.byKey); n != 1 {
			t.Errorf("%d streams are kept, want 1", n)
		}
	})
}

// Each goroutine has a stack, and thousands of instances are idle. What serves the connection is the
// handler of its stream, too.
func TestAnIdleStreamHasOneGoroutine(t *testing.T) {
	inHarness(t, defaults(), func(w *harness) {
		const many = 3
		fn := w.put("f", minInstances(many))
		w.ticks(1)
		for _, spec := range w.started(fn, many) {
			w.ready(spec).ping(time.Second)
		}
		synctest.Wait()
		ofStreams, ofConnections := 0, 0
		for _, stack := range strings.Split(stacks(), "\n\n") {
			if strings.Contains(stack, "serve.(*streamConn).") {
				ofConnections++
			}
			for _, mark := range []string{"scheduler.(*agentStream).", "scheduler.(*pullStream).", "scheduler.(*sessions)."} {
				if strings.Contains(stack, mark) {
					ofStreams++
					break
				}
			}
		}
		if ofStreams != many || ofConnections != many {
			t.Errorf("%d streams have %d goroutines, and their connections %d, want one each", many, ofStreams, ofConnections)
		}
	})
}

// stacks are those of all goroutines.
func stacks() string {
	all := make([]byte, 1<<20)
	for {
		n := runtime.Stack(all, true)
		if n < len(all) {
			return string(all[:n])
		}
		all = make([]byte, 2*len(all))
	}
}

// floodingServer is a stream whose instance always has another message.
type floodingServer struct {
	pullServer
	ctx  context.Context
	came int
}

func (s *floodingServer) Context() context.Context { return s.ctx }

func (s *floodingServer) Recv() (*agentwire.PullRequest, error) {
	if s.ctx.Err() != nil {
		return nil, io.EOF
	}
	s.came++
	return &agentwire.PullRequest{}, nil
}

// An instance that sends without pause is read at a bounded pace, so others are heard.
func TestAFloodOfPullsIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		flood := &floodingServer{ctx: ctx}
		p := &agentStream{server: flood}
		ended := make(chan bool, 1)
		go func() {
			orderly, _ := p.receive(func(*agentwire.PullRequest) error {
				if flood.came > 1e6 {
					cancel()
				}
				return nil
			})
			ended <- orderly
		}()
		<-ended
		if most := int(messageBurst + time.Second/messageEvery + 1); flood.came > most || flood.came < most/2 {
			t.Errorf("%d messages were read in a second, want %d", flood.came, most)
		}
	})
}
