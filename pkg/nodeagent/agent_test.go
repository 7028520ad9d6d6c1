package nodeagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/wiretest"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// expect compares what an agent has heard.
func expect(t *testing.T, what string, p *fakeAgent, want ...string) {
	t.Helper()
	if got := p.heard(); !slices.Equal(got, want) {
		t.Errorf("%s: the agent heard %q, want %q", what, got, want)
	}
}

func expectEnd(t *testing.T, p *fakeAgent, want codes.Code) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-p.ended:
		if status.Code(err) != want {
			t.Errorf("the stream ended with %v, want %v", err, want)
		}
	default:
		t.Errorf("the stream goes on, and should have ended with %v", want)
	}
}

func expectLow(t *testing.T, m *machine, name string, want bool) {
	t.Helper()
	if low, _, _ := m.group(name).state(); low != want {
		t.Errorf("%s is low: %v, want %v", name, low, want)
	}
}

func TestACalmMachineIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		stop := m.run()
		p := m.connect("a", "f")
		m.want(2)
		m.pass(10 * time.Second)
		expect(t, "on a calm machine", p, "welcome")
		p.ask(1) // it may ask nevertheless
		expect(t, "after an ask", p, "grant 1")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A node agent that nobody needs looks at nothing, and says so before.
func TestLooksAreSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last atomic.Pointer[time.Time]
		var instances atomic.Bool
		var signs atomic.Int64
		m := newMachine(t, func(_ *Config, d *Deps) {
			d.Alive = func(some bool) {
				last.Store(new(time.Now()))
				instances.Store(some)
				signs.Add(1)
			}
		})
		defer m.run()()
		p := m.connect("a", "f")
		for _, runnable := range []int{0, 9} {
			m.want(runnable)
			m.pass(time.Minute)
			before := signs.Load()
			m.pass(time.Second)
			if n := signs.Load() - before; n > 20 {
				t.Errorf("with %d threads it gives %d signs a second", runnable, n)
			}
			if silent := time.Since(*last.Load()); !instances.Load() || silent > m.config.Mode.CalmEvery {
				t.Errorf("with %d threads it is silent for %v; instances: %t", runnable, silent, instances.Load())
			}
		}
		m.mu.Lock()
		m.runnable = 0
		m.mu.Unlock()
		p.hangUp()
		m.pass(time.Minute)
		if ago := time.Since(*last.Load()); instances.Load() || ago < 59*time.Second {
			t.Errorf("alone it looked %v ago; instances: %t", ago, instances.Load())
		}
	})
}

func TestTicketsOfABusyMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.Order, c.Calls.Preempt, c.Calls.Slice = callorder.FIFO, false, callorder.Slice{Rule: callorder.SliceOff}
		})
		defer m.run()()
		a, b, c := m.connect("a", "f"), m.connect("b", "g"), m.connect("c", "h")
		m.want(3)
		for _, p := range []*fakeAgent{a, b, c} {
			expect(t, "once the machine is busy", p, "welcome", "ask")
		}
		for i, p := range []*fakeAgent{a, b, c} {
			m.group(string('a' + rune(i))).compute(true)
			p.ask(uint64(i + 1))
		}
		expect(t, "with the first core", a, "grant 1")
		expect(t, "with the second core", b, "grant 2")
		expect(t, "without a core", c)
		// Only two want to run now, and one waits: the machine is still busy.
		m.want(2)
		m.pass(200 * time.Millisecond)
		if got := c.heard(); len(got) < 2 || slices.Contains(got, "grant 3") {
			t.Fatalf("who waits for 300 ms has heard %q", got)
		}
		m.group("a").compute(false)
		a.endCall()
		expect(t, "after the end of a call", c, "grant 3")
		expect(t, "after its own end", a)
		m.want(1)
		m.pass(2 * time.Second)
		expect(t, "once the machine is calm", a, "ask not")
	})
}

func TestWhoWaitsHearsSoEveryTenthOfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without slices, so that holders keep their tickets; and they are never blocked.
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.Slice, c.Calls.BlockedAfter, c.ExemptBelow = callorder.Slice{Rule: callorder.SliceOff}, 0, 0
		})
		defer m.run()()
		agents := []*fakeAgent{m.connect("a", "f"), m.connect("b", "f"), m.connect("c", "f")}
		m.want(9)
		for i, p := range agents {
			p.ask(uint64(i))
			p.heard()
		}
		waits := agents[2]
		for range 20 {
			m.pass(105 * time.Millisecond)
			if got := waits.heard(); len(got) < 1 || got[0] != "still" {
				t.Fatalf("in 105 ms it heard %q", got)
			}
		}
		waits.giveUp(2)
		m.pass(time.Second)
		expect(t, "after it gave up", waits)
		agents[0].endCall()
		agents[1].ask(7) // says that its call before has ended
		expect(t, "after the end of the others", waits)
		expect(t, "with the next call", agents[1], "grant 7")
	})
}

func TestWhoWaitsBrieflyHearsOnlyOfItsCore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.Cores, c.Calls.Slice, c.Calls.BlockedAfter, c.ExemptBelow = 1, callorder.Slice{Rule: callorder.SliceOff}, 0, 0
		})
		defer m.run()()
		has, early, late := m.connect("a", "f"), m.connect("b", "f"), m.connect("c", "f")
		m.want(9)
		for _, p := range []*fakeAgent{has, early, late} {
			p.heard()
		}
		has.ask(1)
		for range 20 { // whatever the time of the looks is
			early.ask(2)
			m.pass(93 * time.Millisecond)
			expect(t, "after 93 ms", early)
			early.giveUp(2)
			m.pass(7 * time.Millisecond)
		}
		early.ask(3)
		m.pass(40 * time.Millisecond)
		late.ask(3)
		m.pass(65 * time.Millisecond)
		expect(t, "after 105 ms", early, "still")
		expect(t, "beside it, after 65 ms", late)
		m.pass(40 * time.Millisecond)
		expect(t, "after 105 ms of its own", late, "still")
		late.giveUp(3)
		early.giveUp(3)
		m.pass(time.Second)
		expect(t, "after it gave up", early)
	})
}

func TestALongCallYieldsAndBreathes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(c *Config, d *Deps) {
			c.Calls.Slice, d.Registry = callorder.Slice{Rule: callorder.SliceFixed, Length: 20 * time.Millisecond}, reg
		})
		defer m.run()()
		long := m.connect("long", "long")
		m.want(9)
		m.group("long").compute(true)
		long.ask(1)
		occupy := m.occupants("x", "y")
		occupy(60 * time.Millisecond) // more than the first slice of 20 ms
		expectLow(t, m, "long", true)
		if got := long.heard(); got[len(got)-1] != "low" {
			t.Errorf("after its slice its agent heard %q", got)
		}
		_, _, before := m.group("long").state()
		occupy(10 * time.Second)
		_, _, after := m.group("long").state()
		// Breaths may take a tenth of the two cores. This one gets 8 ms and at most
		// two samples more in every half second.
		if got := after - before; got < 10*2*6*time.Millisecond || got > 10*2*20*time.Millisecond {
			t.Errorf("in 10 s in the low band it got %v", got)
		}
		if n := value(t, reg, "windlass_node_breaths_total", ""); n < 15 || n > 25 {
			t.Errorf("%v breaths", n)
		}
		if n := value(t, reg, "windlass_node_demotions_total", "slice"); n < 1 {
			t.Errorf("%v demotions", n)
		}
		m.group("x").compute(false)
		m.group("y").compute(false)
		m.pass(100 * time.Millisecond) // blocked calls give up their tickets
		expectLow(t, m, "long", false)
		long.endCall()
		m.want(0)
		m.pass(2 * time.Second)
		if n := value(t, reg, "windlass_node_cpu_seconds_total", "longns"); n < after.Seconds()-0.1 {
			t.Errorf("it has used %v s by the metric, %v in fact", n, after)
		}
	})
}

func TestAnAgentThatDiesLeavesItsTicketAndIsNormal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(_ *Config, d *Deps) { d.Registry = reg })
		defer m.run()()
		a, b, c := m.connect("a", "f"), m.connect("b", "g"), m.connect("c", "h")
		m.want(9)
		for i, p := range []*fakeAgent{a, b, c} {
			m.group(string('a' + rune(i))).compute(true)
			p.ask(1)
		}
		c.heard()
		a.hangUp()
		expectEnd(t, a, codes.OK)
		expect(t, "after the death of a holder", c, "grant 1")
		if _, closed, _ := m.group("a").state(); !closed {
			t.Error("its group was not closed")
		}
		c.hangUp()
		b.endCall()
		b.hangUp()
		synctest.Wait()
		if n := value(t, reg, "windlass_node_agents", ""); n != 0 {
			t.Errorf("%v agents", n)
		}
		if n := value(t, reg, "windlass_node_cpu_seconds_total", "gns"); n != -1 {
			t.Errorf("a function without instances has the series %v", n)
		}
		if n := value(t, reg, "windlass_node_busy", ""); n != 0 {
			t.Error("a machine without agents is busy")
		}
		m.pass(time.Hour) // Run waits, or this would take long
		d := m.connect("d", "f")
		m.pass(100 * time.Millisecond)
		expect(t, "after a pause", d, "welcome", "ask")
	})
}

func TestAnAgentThatDoesNotReadLosesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.Calls.BlockedAfter = 0 })
		defer m.run()()
		stuck := m.dial(true)
		stuck.hello(&nodewire.Hello{Token: "s", Namespace: "ns", Function: "f", Instance: "s"})
		others := []*fakeAgent{m.connect("a", "f"), m.connect("b", "f")}
		m.want(9)
		for _, p := range others {
			p.ask(1)
		}
		stuck.ask(1)
		m.pass(replyQueue * 110 * time.Millisecond) // it gets a Still each 100 ms
		expectEnd(t, stuck, codes.ResourceExhausted)
		others[0].endCall()
		others[0].heard()
		others[0].ask(2)
		expect(t, "meanwhile another", others[0], "grant 2")
	})
}

// Its grant is written by the goroutine that reads its stream.
func TestAnAgentThatDoesNotReadItsGrantKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		stuck, other := m.connect("s", "f"), m.connect("a", "f")
		m.want(9)
		stuck.stuck = true
		stuck.ask(1)
		other.heard()
		other.ask(1)
		expect(t, "beside it another", other, "grant 1")
		again := m.connect("s", "f")
		expectEnd(t, stuck, codes.Aborted)
		expect(t, "a new stream of it", again, "welcome", "ask")
	})
}

func TestAStreamThatSaysNothingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		silent := m.dial(false)
		m.pass(4 * time.Second)
		if len(silent.ended) > 0 {
			t.Fatal("the stream has ended early")
		}
		m.pass(2 * time.Second)
		expectEnd(t, silent, codes.DeadlineExceeded)
	})
}

// slowIdentifier answers when the stream has ended.
type slowIdentifier struct{}

func (slowIdentifier) Identify(ctx context.Context, _ Hello, _ net.Addr) (Instance, error) {
	<-ctx.Done()
	return Instance{}, fmt.Errorf("the keys did not come: %w", ctx.Err())
}

func TestASlowProofHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(_ *Config, d *Deps) { d.Instances = slowIdentifier{} })
		p := m.connect("a", "f")
		m.pass(4 * time.Second)
		if len(p.ended) > 0 {
			t.Fatal("the stream has ended early")
		}
		if len(m.state.sessions) > 0 {
			t.Error("an instance joined without a proof")
		}
		m.pass(2 * time.Second)
		expectEnd(t, p, codes.DeadlineExceeded)
	})
}

func TestHellosAreChecked(t *testing.T) {
	for name, tt := range map[string]struct {
		first *nodewire.ComputeRequest
		want  codes.Code
	}{
		"no hello":     {&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{}}}, codes.InvalidArgument},
		"beyond":       {wiretest.Beyond(&nodewire.ComputeRequest{}), codes.InvalidArgument},
		"wrong token":  {helloOf(&nodewire.Hello{Token: "x", Instance: "a"}), codes.Unauthenticated},
		"no token":     {helloOf(&nodewire.Hello{Instance: "a"}), codes.PermissionDenied},
		"far protocol": {helloOf(&nodewire.Hello{Token: "a", Instance: "a", ProtocolMin: 9, ProtocolMax: 9}), codes.FailedPrecondition},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMachine(t, nil)
				p := m.dial(false)
				p.say(tt.first)
				expectEnd(t, p, tt.want)
				if m.state.open != 0 || len(m.state.sessions) != 0 {
					t.Errorf("%d streams and %d sessions are left", m.state.open, len(m.state.sessions))
				}
			})
		})
	}
}

func helloOf(h *nodewire.Hello) *nodewire.ComputeRequest {
	return &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Hello{Hello: h}}
}

func TestWhatALaterReleaseSaysIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.dial(false)
		p.say(wiretest.Newer(helloOf(&nodewire.Hello{Token: "a", Namespace: "ns", Function: "f", Instance: "a", ProtocolMin: 1, ProtocolMax: 7, Features: []string{"later"}})))
		m.want(9)
		p.say(wiretest.Beyond(&nodewire.ComputeRequest{}))
		p.say(wiretest.Newer(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: 4}}}))
		expect(t, "a later agent", p, "welcome", "ask", "grant 4")
	})
}

func TestTheAgentsThatThereMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		var agents []*fakeAgent
		for i := range m.config.MaxAgents {
			agents = append(agents, m.connect(fmt.Sprint("i", i), "f"))
		}
		surplus := m.connect("surplus", "f")
		expectEnd(t, surplus, codes.ResourceExhausted)
		expect(t, "the last of a thousand", agents[999], "welcome")
		agents[0].hangUp()
		synctest.Wait()
		expect(t, "who takes its place", m.connect("next", "f"), "welcome")
	})
}

func TestInstancesOfTwoFunctionsMayHaveTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		first, second := m.connect("a", "f"), m.connect("a", "g")
		m.want(9)
		first.ask(1)
		second.ask(1)
		expect(t, "the first", first, "welcome", "ask", "grant 1")
		expect(t, "the second", second, "welcome", "ask", "grant 1")
	})
}

func TestASecondStreamEndsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		first := m.connect("a", "f")
		m.want(9)
		first.ask(1)
		group := m.group("a")
		second := m.connect("a", "f")
		expectEnd(t, first, codes.Aborted)
		if _, closed, _ := group.state(); !closed {
			t.Error("the first group was not closed")
		}
		if _, closed, _ := m.group("a").state(); closed || m.group("a") == group {
			t.Error("the second group is not the stream's own")
		}
		m.pass(time.Second)
		second.ask(2)
		expect(t, "the second stream", second, "welcome", "ask", "grant 2")
	})
}

// A tenant's pod must not fill the operator's log.
func TestStreamsThatReplaceOthersAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		m := newMachine(t, func(c *Config, d *Deps) {
			d.Log = slog.New(slog.NewTextHandler(&log, nil))
			params := colocate.DefaultParams(8)
			c.CoLocation, c.LatencyCritical = &params, []string{"ns"}
		})
		m.holds = map[string]*fakeHold{}
		defer m.run()()
		m.connectAs("LatencyCritical", "c")
		for range 20 {
			m.connectAs("Batch", "b")
		}
		if log.Len() > 0 {
			t.Errorf("it says\n%s", log.String())
		}
	})
}

// An agent must not have several streams, and so several groups, by saying several functions.
func TestAnInstanceHasOneStreamWhateverItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		m.keyIsToken = true
		defer m.run()()
		first := m.connect("a", "f")
		expect(t, "the second stream", m.connect("a", "g"), "welcome")
		expectEnd(t, first, codes.Aborted)
	})
}

func TestTheEndOfRunSetsAllToNormal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.Slice = callorder.Slice{Rule: callorder.SliceFixed, Length: 20 * time.Millisecond}
		})
		stop := m.run()
		var agents []*fakeAgent
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			agents = append(agents, m.connect(name, "f"))
			m.group(name).compute(true)
		}
		m.want(9)
		for _, p := range agents {
			p.ask(1)
		}
		m.pass(300 * time.Millisecond)
		low := 0
		for _, g := range m.groups {
			if is, _, _ := g.state(); is {
				low++
			}
		}
		if low == 0 {
			t.Fatal("nobody is low, so nothing is shown")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		for i, p := range agents {
			expectEnd(t, p, codes.Unavailable)
			if is, closed, _ := m.group(string('a' + rune(i))).state(); is || !closed {
				t.Errorf("instance %d is low: %v, closed: %v", i, is, closed)
			}
		}
		late := m.connect("late", "f")
		expectEnd(t, late, codes.Unavailable)
		if _, closed, _ := m.group("late").state(); !closed {
			t.Error("the group of who came late was not closed")
		}
	})
}

func TestMovesThatFailAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(_ *Config, d *Deps) { d.Registry = reg })
		defer m.run()()
		a := m.connect("a", "a")
		m.group("a").compute(true)
		m.want(9)
		a.ask(1)
		occupy := m.occupants("x", "y")
		occupy(60 * time.Millisecond)
		expectLow(t, m, "a", true)
		m.group("a").failWith(&fs.PathError{Op: "write", Path: "/sys/fs/cgroup/pod1/cpu.shares", Err: syscall.EINVAL})
		m.group("a").compute(false)
		a.endCall()
		m.pass(50 * time.Millisecond)
		expectLow(t, m, "a", true)
		if n := value(t, reg, "windlass_node_failed_writes_total", "cpu.shares"); n < 1 {
			t.Errorf("%v failures", n)
		}
		m.group("a").failWith(nil)
		m.pass(150 * time.Millisecond)
		expectLow(t, m, "a", false)
	})
}

func TestWithoutBandsOrdersRemain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(_ *Config, d *Deps) { d.Registry = reg })
		defer m.run()()
		p := m.connect("a", "a")
		m.group("a").failWith(fmt.Errorf("a process: %w", errors.ErrUnsupported))
		m.group("a").compute(true)
		m.want(9)
		p.ask(1)
		m.pass(time.Second)
		if n := value(t, reg, "windlass_node_failed_writes_total", ""); n != -1 {
			t.Errorf("%v failures", n)
		}
		for _, name := range []string{"b", "c"} {
			other := m.connect(name, name)
			m.group(name).failWith(errors.ErrUnsupported)
			m.group(name).compute(true)
			other.ask(1)
		}
		m.pass(300 * time.Millisecond)
		if n := len(m.state.core.AppendLow(nil)); n == 0 {
			t.Error("nobody has lost a ticket")
		}
		if n := value(t, reg, "windlass_node_low_instances", ""); n != 0 {
			t.Errorf("%v instances are in the low band", n)
		}
		p.endCall()
		if n := value(t, reg, "windlass_node_cpu_seconds_total", "ans"); n < 0.9 {
			t.Errorf("it has used %v s", n)
		}
	})
}

func TestVeryShortCallsStopAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.connect("a", "short")
		m.want(9)
		p.ask(1)
		p.endCall()
		expect(t, "after a call of no time", p, "welcome", "ask", "grant 1", "busy")
		m.want(0)
		m.pass(2 * time.Second)
		expect(t, "on a calm machine", p, "ask not")
		m.want(9)
		expect(t, "when it is busy again", p, "ask")
	})
}

func TestWhoComputesWithoutAskingIsLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(c *Config, d *Deps) {
			c.Calls.Unasked.Start, c.Breath.Share, d.Registry = 50*time.Millisecond, 0, reg
		})
		defer m.run()()
		silent, quiet := m.connect("a", "f"), m.connect("b", "g")
		m.group("a").compute(true)
		m.pass(time.Second)
		expectLow(t, m, "a", false) // the machine is calm
		m.want(9)
		m.pass(500 * time.Millisecond)
		expectLow(t, m, "a", true)
		expectLow(t, m, "b", false)
		_, _, used := m.group("a").state()
		m.pass(10 * time.Second)
		if _, _, now := m.group("a").state(); now-used > 600*time.Millisecond {
			t.Errorf("in 10 s it used %v without a ticket", now-used)
		}
		expect(t, "an instance that does nothing", quiet, "welcome", "ask")
		silent.ask(1)
		expectLow(t, m, "a", false)
		if n := value(t, reg, "windlass_node_demotions_total", "unasked"); n < 1 {
			t.Errorf("%v demotions", n)
		}
	})
}

func TestLowInstancesAreReadOnceInEachLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.Calls.Unasked.Start, c.Breath.Share = 50*time.Millisecond, 0 })
		defer m.run()()
		const silent = 20
		for n := range silent {
			name := fmt.Sprint("i", n)
			m.connect(name, name)
			m.group(name).compute(true)
		}
		m.want(9)
		m.pass(300 * time.Millisecond)
		if n := len(m.state.core.AppendLow(nil)); n != silent {
			t.Fatalf("%d are low", n)
		}
		if n := m.readsIn(time.Second); n > 13*silent {
			t.Errorf("each is read %d times a second", n/silent)
		}
	})
}

// A look that a message makes finds what the message has read a moment ago.
func TestAMessageReadsItsInstanceOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) { c.ExemptBelow = 0 })
		defer m.run()()
		occupy := m.occupants("a")
		m.want(9)
		occupy(100 * time.Millisecond)
		const asks = 100
		reads := m.group("a").readCount()
		occupy(asks * 10 * time.Millisecond)
		if n := m.group("a").readCount() - reads; n > asks+asks/10 {
			t.Errorf("%d reads for %d asks", n, asks)
		}
	})
}

// The moment at which a call begins is no sample without processor time.
func TestACallThatHasJustBegunIsNotStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.connect("a", "f")
		m.want(9)
		for m.sinceLook() < 9*time.Millisecond {
			m.pass(time.Millisecond)
		}
		p.ask(1) // makes a look
		m.pass(13 * time.Millisecond)
		if n := m.counts(); n.Holding != 1 {
			t.Fatalf("after one sample the calls are %+v", n)
		}
		m.pass(12 * time.Millisecond)
		if n := m.counts(); n.Blocked != 1 {
			t.Errorf("after two samples the calls are %+v", n)
		}
	})
}

func TestSlicesAndBlockedCallsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(c *Config, d *Deps) {
			c.Calls.Slice, d.Registry = callorder.Slice{Rule: callorder.SliceSFS}, reg
		})
		defer m.run()()
		if s := value(t, reg, "windlass_node_slice_seconds", ""); s != 0.02 {
			t.Errorf("the first slice is %v s", s)
		}
		p := m.connect("a", "a")
		m.want(9)
		for n := range uint64(120) {
			p.ask(n + 1)
			m.pass(4 * time.Millisecond)
		}
		m.pass(300 * time.Millisecond)
		if s := value(t, reg, "windlass_node_slice_seconds", ""); s != 0.008 {
			t.Errorf("the slice of arrivals each 4 ms on two cores is %v s", s)
		}
		if n := value(t, reg, "windlass_node_blocked_total", ""); n != 1 {
			t.Errorf("%v calls were blocked", n)
		}
	})
}

func TestCallsThatSleepAreSampledSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		const calls = 100
		var agents []*fakeAgent
		for n := range calls {
			agents = append(agents, m.connect(fmt.Sprint("i", n), fmt.Sprint("f", n)))
		}
		m.want(99)
		for _, p := range agents {
			p.ask(1)
		}
		m.pass(time.Second)
		if n := m.state.core.Counts(); n.Blocked != calls {
			t.Fatalf("the calls are %+v", n)
		}
		if n := m.readsIn(time.Second); n > 30*calls {
			t.Errorf("each is read %d times a second", n/calls)
		}
	})
}

func TestAnExemptFunctionThatComputesMuchAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.connect("a", "short")
		m.want(9)
		p.ask(1)
		p.endCall()
		expect(t, "after a call of no time", p, "welcome", "ask", "grant 1", "busy")
		m.group("a").compute(true)
		m.pass(300 * time.Millisecond)
		if got := p.heard(); len(got) == 0 || got[0] != "ask" {
			t.Errorf("after 300 ms of processor time it heard %q", got)
		}
	})
}

// A ticket for a call that another instance has taken meanwhile says nothing about the function.
func TestACallThatGaveUpAsItsGrantWasSentIsNoCallOfItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		m := newMachine(t, func(c *Config, d *Deps) { c.Calls.Cores, d.Registry = 1, reg })
		defer m.run()()
		p, next := m.connect("a", "f"), m.connect("b", "g")
		m.want(9)
		p.ask(1)
		next.ask(1)
		p.giveUp(1)
		expect(t, "after the first gave up", next, "welcome", "ask", "grant 1")
		m.pass(5 * time.Millisecond)
		p.ask(2)
		if got := value(t, reg, "windlass_node_execution_seconds_total", "fns"); got > 0 {
			t.Errorf("it has run for %v s", got)
		}
	})
}

func TestWaitsThatEndWithoutATicketCount(t *testing.T) {
	for name, end := range map[string]func(*fakeAgent){
		"given up":              func(p *fakeAgent) { p.giveUp(1) },
		"begun without it":      func(p *fakeAgent) { p.endCall() },
		"the next one asks":     func(p *fakeAgent) { p.ask(2) },
		"the instance has gone": func(p *fakeAgent) { p.hangUp() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := prometheus.NewRegistry()
				m := newMachine(t, func(c *Config, d *Deps) {
					c.Calls.Cores, c.Calls.Slice, c.Calls.BlockedAfter, d.Registry = 1, callorder.Slice{Rule: callorder.SliceOff}, 0, reg
				})
				defer m.run()()
				has, waits := m.connect("a", "f"), m.connect("b", "g")
				m.want(9)
				has.ask(1)
				waits.ask(1)
				m.pass(5 * time.Second)
				end(waits)
				synctest.Wait()
				// value is the number of waits: of both calls.
				if n := value(t, reg, "windlass_node_core_wait_seconds", "serpt"); n != 2 {
					t.Errorf("%v waits are counted", n)
				}
				if sum := sumOf(t, reg, "windlass_node_core_wait_seconds"); sum < 5 {
					t.Errorf("they are %v s", sum)
				}
			})
		})
	}
}

func TestARefusedCallIsNoCallOfItsFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.connect("a", "long")
		m.want(9)
		p.ask(1)
		p.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ended{Ended: &nodewire.Ended{Refused: true}}})
		p.ask(2)
		expect(t, "after a call that was refused", p, "welcome", "ask", "grant 1", "grant 2")
		if mean, known := m.state.core.Mean("ns", "long"); known {
			t.Errorf("its mean is %v", mean)
		}
	})
}

// An agent that sends without pause is read at a bounded pace, and others are heard meanwhile.
func TestAFloodOfAsksIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		stop := m.run()
		flood, honest := m.connect("flood", "flood"), m.connect("honest", "honest")
		m.want(9)
		flood.heard()
		ctx, hangUp := flood.ctx, flood.hangUp
		go func() {
			for n := uint64(1); ; n++ {
				select {
				case flood.requests <- &nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Ask{Ask: &nodewire.Ask{Ask: n}}}:
				case <-ctx.Done():
					return
				}
			}
		}()
		m.pass(time.Second)
		honest.heard()
		honest.ask(1)
		m.pass(time.Millisecond)
		if got := honest.heard(); !slices.Contains(got, "grant 1") {
			t.Errorf("beside a flood an ask is answered %v", got)
		}
		flood.mu.Lock()
		replies := len(flood.replies)
		flood.mu.Unlock()
		if most := 2 * int(messageBurst+time.Second/messageEvery); replies > most {
			t.Errorf("%d replies in a second, want %d at most", replies, most)
		}
		hangUp()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutALoadTheMachineIsCalm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		p := m.connect("a", "f")
		m.want(9)
		m.mu.Lock()
		m.loadErr = errors.New("no such file")
		m.mu.Unlock()
		m.pass(2 * time.Second)
		expect(t, "without a load", p, "welcome", "ask", "ask not")
	})
}

func TestTheLoadIsNotReadWhileMoreCallsWaitThanThereAreCores(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.BlockedAfter, c.Calls.Slice = 0, callorder.Slice{Rule: callorder.SliceOff}
		})
		defer m.run()()
		var agents []*fakeAgent
		for n := range 5 {
			agents = append(agents, m.connect(fmt.Sprint("i", n), "f"))
		}
		m.want(9)
		for _, p := range agents {
			p.ask(1)
		}
		m.pass(100 * time.Millisecond)
		m.mu.Lock()
		m.loads, m.runnable = 0, 0
		m.mu.Unlock()
		m.pass(3 * time.Second)
		m.mu.Lock()
		loads := m.loads
		m.mu.Unlock()
		if loads > 0 {
			t.Errorf("it was read %d times", loads)
		}
		if !m.state.mode.busy {
			t.Error("the machine is calm")
		}
	})
}

func TestCallsThatRanAlreadyAreTakenIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, nil)
		defer m.run()()
		for _, name := range []string{"a", "b"} {
			p := m.connect(name, name)
			m.group(name).compute(true)
			p.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Running{Running: &nodewire.Running{ForNs: int64(time.Second)}}})
		}
		c := m.connect("c", "c")
		m.want(9)
		m.pass(100 * time.Millisecond)
		if n := m.state.core.Counts(); n.Holding+n.Demoted+n.Preempted+n.Blocked != 2 {
			t.Errorf("the core knows %+v", n)
		}
		c.ask(1)
		m.pass(100 * time.Millisecond)
		if got := c.heard(); !slices.Contains(got, "grant 1") {
			t.Errorf("beside two long calls it heard %q", got)
		}
	})
}

func TestConfigsAreChecked(t *testing.T) {
	if err := DefaultConfig(4).Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"cores":   func(c *Config) { c.Calls.Cores = 0 },
		"sample":  func(c *Config) { c.SampleEvery = 0 },
		"still":   func(c *Config) { c.StillEvery = -1 },
		"mode":    func(c *Config) { c.Mode.Above = 5 },
		"calm":    func(c *Config) { c.Mode.CalmEvery = time.Millisecond },
		"breath":  func(c *Config) { c.Breath.Share = 1.5 },
		"exempt":  func(c *Config) { c.ExemptBelow = -1 },
		"agents":  func(c *Config) { c.MaxAgents = 0 },
		"silence": func(c *Config) { c.HelloWithin = 0 },
	} {
		c := DefaultConfig(4)
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: it is valid", name)
		}
		if _, err := New(c, Deps{Now: time.Now}); err == nil {
			t.Errorf("%s: New accepts it", name)
		}
	}
}

// A long call would otherwise pay at its end for all that it has computed in the low band, and nothing before.
func TestWhatACallComputesInTheLowBandCountsWhileItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, func(c *Config, _ *Deps) {
			c.Calls.Cores, c.Calls.Order, c.Calls.Slice = 1, callorder.FIFO, callorder.Slice{Rule: callorder.SliceOff}
			c.Calls.BlockedAfter = 0
		})
		defer m.run()()
		long, other := m.dial(false), m.connect("other", "f")
		long.hello(&nodewire.Hello{Token: "long", Namespace: "evil", Function: "f", Instance: "long", SliceNs: int64(20 * time.Millisecond)})
		m.want(3)
		long.ask(1)
		m.group("long").compute(true)
		m.group("long").spare()
		other.ask(1)
		m.pass(30 * time.Millisecond)
		expect(t, "after its slice", long, "welcome", "ask", "grant 1", "low")
		m.group("other").compute(true)
		m.pass(time.Second)
		m.group("other").compute(false)
		m.pass(time.Second)
		expectLow(t, m, "long", true)
		m.Agent.mu.Lock()
		defer m.Agent.mu.Unlock()
		for id, s := range m.state.sessions {
			if want := s.name == "other"; m.state.core.MayBeExempt(m.now(), id) != want {
				t.Errorf("%s may be exempt: %v", s.name, !want)
			}
		}
	})
}
