package podagent

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// fakeNode hands every stream to the test, which speaks for the node agent.
// fakeNode promises a sign each stillEvery, unless that is 0.
type fakeNode struct {
	streams    chan *computing
	stillEvery time.Duration
}

// computing is the node agent's end of one stream.
type computing struct {
	t      *testing.T
	stream grpc.BidiStreamingServer[nodewire.ComputeRequest, nodewire.ComputeReply]
	said   chan string
	end    chan error // takes one
}

func (n *fakeNode) serve(raw grpc.ServerStream) error {
	s := &computing{
		stream: &grpc.GenericServerStream[nodewire.ComputeRequest, nodewire.ComputeReply]{ServerStream: raw},
		said:   make(chan string, 100), end: make(chan error, 1),
	}
	received := make(chan struct{})
	go func() {
		defer close(received)
		defer close(s.said)
		for {
			msg, err := s.stream.Recv()
			if err != nil {
				return
			}
			s.said <- tellCompute(msg)
		}
	}()
	n.streams <- s
	select {
	case err := <-s.end:
		return err
	case <-received:
		return nil
	}
}

func tellCompute(m *nodewire.ComputeRequest) string {
	switch kind := m.GetKind().(type) {
	case *nodewire.ComputeRequest_Hello:
		h := kind.Hello
		said := fmt.Sprintf("hello %s/%s %s %s", h.GetNamespace(), h.GetFunction(), h.GetInstance(), h.GetToken())
		if h.GetClass() != "" || h.GetSliceNs() != 0 {
			said += fmt.Sprintf(" class %q slice %v", h.GetClass(), time.Duration(h.GetSliceNs()))
		}
		if h.GetCgroup() != ownGroup("/") {
			said += fmt.Sprintf(" in the group %d", h.GetCgroup())
		}
		if n := h.GetConcurrency(); n != 1 {
			said += fmt.Sprintf(" concurrency %d", n)
		}
		return said
	case *nodewire.ComputeRequest_Running:
		return fmt.Sprintf("runs for %v", time.Duration(kind.Running.GetForNs()))
	case *nodewire.ComputeRequest_Ask:
		return fmt.Sprintf("ask %d waited %v", kind.Ask.GetAsk(), time.Duration(kind.Ask.GetWaitedNs()))
	case *nodewire.ComputeRequest_Ended:
		return "ended"
	case *nodewire.ComputeRequest_GaveUp:
		return fmt.Sprintf("gave up %d", kind.GaveUp.GetAsk())
	}
	return "nonsense"
}

func (s *computing) hear(want ...string) {
	s.t.Helper()
	for _, want := range want {
		if got := <-s.said; got != want {
			s.t.Fatalf("heard %q, want %q", got, want)
		}
	}
}

func (s *computing) say(m *nodewire.ComputeReply) {
	s.t.Helper()
	if err := s.stream.Send(m); err != nil {
		s.t.Errorf("the agent is gone: %v", err)
	}
	synctest.Wait()
}

func (s *computing) mode(ask bool) {
	s.say(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Mode{Mode: &nodewire.Mode{Ask: ask}}})
}

func (s *computing) grant(ask uint64) {
	s.say(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Grant{Grant: &nodewire.Grant{Ask: ask}}})
}

// joinNode waits for the agent's next stream, and welcomes it.
func (w *harness) joinNode() *computing {
	w.t.Helper()
	return w.joinNodeWith("secret")
}

// lendOnANode runs an agent that knows its node agent, and whose place is a gateway's.
func (w *harness) lendOnANode() (p *pulls, node *computing, g *gatewayEnd) {
	w.t.Helper()
	w.run()
	w.adapter.ready <- nil
	p = w.stream()
	p.hear(helloText, "pull 1")
	node, g = w.joinNode(), w.loan(p, "a")
	p.hear("pull 0 done a after 0s lent gateway:1 1")
	return p, node, g
}

func (w *harness) joinNodeWith(token string) *computing {
	w.t.Helper()
	s := <-w.node.streams
	s.t = w.t
	s.hear("hello default/f cid " + token)
	s.say(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Welcome{Welcome: &nodewire.Welcome{Protocol: 1, StillEveryNs: int64(w.node.stillEvery)}}})
	return s
}

func onANode(c *agentenv.Config) { c.Node, c.Concurrency = "node:1", 1 }

func TestOnABusyNodeCallsBeginWithACore(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		w.run()
		w.adapter.ready <- nil
		p := w.stream()
		p.hear(helloText, "pull 1")
		node := w.joinNode()
		node.mode(true)
		p.hear("pull 0 busy")
		p.lent("a")
		node.hear("ask 1 waited 0s")
		if n := len(w.gateway.claims); n > 0 {
			t.Error("claimed without a core")
		}
		node.grant(1)
		c := w.claim()
		c.grant(get())
		(<-w.adapter.calls).hello()
		node.hear("ended")
		c.hear(`head 200 cold whole "hello" keeps`)
		c.hearEnd()
		p.hear("pull 0 done a after 0s lent gateway:1 1 busy")
		if !c.gatewayEnd.busy.Load() {
			t.Error("the gateway does not know that the node is busy")
		}

		loan := c.gatewayEnd.call(get())
		node.hear("ask 2 waited 0s")
		time.Sleep(50 * time.Millisecond)
		p.hear("pull 0 lent gateway:1 1 busy waits for a core since 50ms")
		if len(w.adapter.calls) > 0 {
			t.Error("began without a core")
		}
		loan.hear("long wait 50ms")
		node.grant(2)
		loan.hear("long wait 0s")
		p.hear("pull 0 lent gateway:1 1 busy")
		(<-w.adapter.calls).hello()
		node.hear("ended")
		loan.hear(`head 200 whole "hello" keeps`)
		loan.hearEnd()
		node.mode(false)
		p.hear("pull 0 lent gateway:1 1")
		if c.gatewayEnd.busy.Load() {
			t.Error("the gateway does not know that the node is calm")
		}
		p.retire("test")
		w.ended(nil)
	})
}

func TestAnAgentTellsItsNodeAgentWhatItsFunctionIs(t *testing.T) {
	for want, change := range map[string]func(*agentenv.Config){
		`hello default/f cid secret`:                        func(*agentenv.Config) {},
		`hello default/f cid secret class "Batch" slice 0s`: func(c *agentenv.Config) { c.Class = "Batch" },
		`hello default/f cid secret concurrency 3`:          func(c *agentenv.Config) { c.Concurrency = 3 },
		`hello default/f cid secret class "" slice 50ms`:    func(c *agentenv.Config) { c.Slice = 50 * time.Millisecond },
	} {
		withHarness(t, func(c *agentenv.Config) { onANode(c); change(c) }, func(w *harness) {
			w.run()
			s := <-w.node.streams
			s.t = w.t
			s.hear(want)
			w.adapter.ready <- nil
			p := w.stream()
			p.hear(helloText)
			<-p.said // it pulls
			p.retire("test")
			w.ended(nil)
		})
	}
}

// A gateway that has a core elsewhere asks for a call that waits. The call then never runs here, and
// its place is the gateway's again. What it had waited for counts where it goes.
func TestACallThatWaitsForACoreIsGivenUp(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		p, node, g := w.lendOnANode()
		node.mode(true)
		p.hear("pull 0 lent gateway:1 1 busy")
		early := get()
		early.CoreWait = 200 * time.Millisecond
		loan := g.call(early)
		node.hear("ask 2 waited 200ms")
		time.Sleep(50 * time.Millisecond)
		p.hear("pull 0 lent gateway:1 1 busy waits for a core since 50ms")
		loan.hear("long wait 250ms")
		loan.giveUp()
		node.hear("gave up 2")
		loan.hear("release keeps")
		loan.hearEnd()
		p.hear("pull 0 lent gateway:1 1 busy")

		next := g.call(get())
		node.hear("ask 3 waited 0s")
		node.grant(3)
		next.giveUp() // too late
		loan.giveUp() // once more
		(<-w.adapter.calls).hello()
		node.hear("ended")
		next.hear(`head 200 whole "hello" keeps`)
		next.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

// A node agent tells instances that need not ask that their node is busy, so that others prefer those of
// calm nodes. One of an older release says only whether to ask.
func TestAnInstanceThatNeedNotAskSaysThatItsNodeIsBusy(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		p, node, g := w.lendOnANode()
		say := func(ask, busy bool) {
			node.say(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Mode{Mode: &nodewire.Mode{Ask: ask, Busy: busy}}})
		}
		say(false, true)
		p.hear("pull 0 lent gateway:1 1 busy")
		if !g.busy.Load() {
			t.Error("the gateway does not know that the node is busy")
		}
		loan := g.call(get())
		(<-w.adapter.calls).hello()
		loan.hear(`head 200 whole "hello" keeps`)
		loan.hearEnd()
		say(true, true)
		say(false, true) // its calls are very short
		say(false, false)
		p.hear("pull 0 lent gateway:1 1")
		p.retire("test")
		w.ended(nil)
	})
}

// A call by a loan that waits until its time is over costs neither the instance nor its place.
func TestACallWhoseTimeIsOverWhileItWaitsForACore(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		p, node, g := w.lendOnANode()
		node.mode(true)
		p.hear("pull 0 lent gateway:1 1 busy")
		late := get()
		late.Remaining = time.Second
		loan := g.call(late)
		node.hear("ask 2 waited 0s")
		for range 15 {
			node.say(&nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Still{Still: &nodewire.Still{}}})
			time.Sleep(100 * time.Millisecond)
		}
		node.hear("gave up 2")
		node.grant(2) // crossed
		loan.hear("long wait 50ms", "end TOO_LATE keeps")
		loan.hearEnd()
		if len(w.adapter.calls) > 0 {
			t.Error("a call began whose time is over")
		}
		w.runs()
		next := g.call(get())
		node.hear("ask 3 waited 0s")
		node.grant(3)
		(<-w.adapter.calls).hello()
		next.hear(`head 200 whole "hello" keeps`)
		next.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestAClientThatLeavesWhileItsCallWaitsForACore(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		p, node, g := w.lendOnANode()
		node.mode(true)
		loan := g.call(get())
		node.hear("ask 2 waited 0s")
		loan.cancel()
		node.hear("gave up 2")
		loan.hear("release keeps")
		loan.hearEnd()
		node.grant(2) // crossed
		if len(w.adapter.calls) > 0 {
			t.Error("a call began that nobody waits for")
		}
		after := g.call(get())
		node.hear("ask 3 waited 0s")
		node.grant(3)
		(<-w.adapter.calls).hello()
		after.hear(`head 200 whole "hello" keeps`)
		after.hearEnd()
		p.retire("test")
		w.ended(nil)
	})
}

func TestAGatewayThatIsLostWhileItsCallWaitsForACore(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		p, node, g := w.lendOnANode()
		node.mode(true)
		g.call(get())
		node.hear("ask 2 waited 0s")
		w.gateway.takeDown()
		g.lose()
		node.hear("gave up 2")
		p.hear("pull 0 lent gateway:1 1 busy", "pull 0 busy", "pull 1 busy")
		node.grant(2) // crossed
		if len(w.adapter.calls) > 0 {
			t.Error("a call began whose gateway is gone")
		}
		time.Sleep(50 * time.Millisecond)
		w.gateway.putUp()
		p.lent("b")
		node.hear("ask 3 waited 0s")
		node.grant(3)
		c := w.claim()
		c.grant(get())
		(<-w.adapter.calls).hello()
		node.hear("ended")
		p.retire("test")
		w.ended(nil)
	})
}

// However a node agent fails, calls wait for 220 ms at most, and it is found again.
func TestCallsBeginWithoutANodeAgentThatFails(t *testing.T) {
	for name, fail := range map[string]func(*computing){
		"it ends":         func(s *computing) { s.end <- errGone },
		"it stands still": func(*computing) {},
	} {
		t.Run(name, func(t *testing.T) {
			withHarness(t, onANode, func(w *harness) {
				p, node, g := w.lendOnANode()
				node.mode(true)
				loan := g.call(get())
				node.hear("ask 2 waited 0s")
				before := time.Now()
				fail(node)
				(<-w.adapter.calls).hello()
				if waited := time.Since(before); waited > 220*time.Millisecond {
					t.Errorf("the call waited for %v", waited)
				}
				if name == "it stands still" {
					loan.hear("long wait 50ms", "long wait 0s")
				}
				loan.hear(`head 200 whole "hello" keeps`)
				loan.hearEnd()
				if name == "it ends" {
					node = w.joinNode()
					node.mode(true)
				} else {
					time.Sleep(time.Second)
					node.hear("ended")
				}
				next := g.call(get())
				node.hear("ask 3 waited 0s")
				node.grant(3)
				(<-w.adapter.calls).hello()
				next.hear(`head 200 whole "hello" keeps`)
				next.hearEnd()
				p.retire("test")
				w.ended(nil)
			})
		})
	}
}

func TestACallWaitsForAsLongAsTheNodeAgentMayBeSilent(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		w.node.stillEvery = 300 * time.Millisecond
		p, node, g := w.lendOnANode()
		node.mode(true)
		loan := g.call(get())
		node.hear("ask 2 waited 0s")
		before := time.Now()
		(<-w.adapter.calls).hello()
		if waited := time.Since(before); waited < 600*time.Millisecond || waited > 620*time.Millisecond {
			t.Errorf("the call waited for %v", waited)
		}
		loan.hear("long wait 50ms", "long wait 0s")
		loan.hear(`head 200 whole "hello" keeps`)
		loan.hearEnd()
		node.hear("ended")
		p.retire("test")
		w.ended(nil)
	})
}

func TestACallThatRunsWhenTheNodeBecomesBusyIsReported(t *testing.T) {
	withHarness(t, onANode, func(w *harness) {
		w.run()
		w.adapter.ready <- nil
		p := w.stream()
		p.hear(helloText, "pull 1")
		node := w.joinNode()
		node.mode(false)
		_, call := w.call(p, "a")
		time.Sleep(3 * time.Second)
		node.mode(true)
		node.hear("runs for 3s")
		call.hello()
		node.hear("ended")
		p.retire("test")
		w.ended(nil)
	})
}

func TestASpareInstanceJoinsOnceItHasAFunction(t *testing.T) {
	withHarness(t, func(c *agentenv.Config) {
		asSpare(c)
		c.Node = "node:1"
	}, func(w *harness) {
		p := w.beginSpare()
		synctest.Wait()
		if len(w.node.streams) > 0 {
			t.Error("it joins while it belongs to no function")
		}
		to := wireAssignment()
		to.Concurrency = 1
		p.assign(to)
		w.adapter.ready <- nil
		p = w.stream()
		p.hear(helloText)
		w.joinNode().mode(true)
		p.retire("test")
		w.ended(nil)
	})
}

// The node agent gets a token of its own, which the kubelet replaces before it expires.
func TestEachHelloToTheNodeAgentHasTheNewToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "node-token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	withHarness(t, func(c *agentenv.Config) { onANode(c); c.NodeTokenFile = file }, func(w *harness) {
		w.run()
		w.adapter.ready <- nil
		p := w.stream()
		p.hear(helloText, "pull 1") // with the token for schedulers
		w.joinNodeWith("first").end <- errGone
		write("second")
		w.joinNodeWith("second")
		p.retire("test")
		w.ended(nil)
	})
}
