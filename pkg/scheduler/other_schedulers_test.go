package scheduler

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler/capacity"
)

// commons are the nodes of several worlds.
type commons struct {
	nodes []placement.Node

	mu     sync.Mutex
	worlds []*harness
}

func (c *commons) Candidates(*v1alpha1.Function) placement.Candidates {
	return placement.Candidates{Nodes: c.Nodes()}
}

func (c *commons) Nodes() []placement.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes, places := make([]placement.Node, len(c.nodes)), make(map[string]int)
	for i, n := range c.nodes {
		nodes[i], places[n.Name] = n, i
	}
	for _, w := range c.worlds {
		w.runtime.mu.Lock()
		for _, spec := range w.runtime.started {
			if w.runtime.alive[keyOf(string(spec.Function.UID), spec.CID)] != nil {
				n := &nodes[places[spec.Node]]
				n.Requested = n.Requested.Plus(w.instances.Requests(spec.Function))
			}
		}
		w.runtime.mu.Unlock()
	}
	return nodes
}

// inHarnesses runs body in worlds of several schedulers on the same nodes, which have room for
// so many instances each.
func inHarnesses(t *testing.T, worlds, nodes, room int, body func(l *land)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, l := &commons{}, &land{heartbeats: make(map[int]bool)}
		for n := range nodes {
			c.nodes = append(c.nodes, placement.Node{Name: fmt.Sprint("n", n), Allocatable: placement.Amount{MilliCPU: int64(100 * room), Memory: 1 << 50}})
		}
		for n := range worlds {
			config := fullNode(0)
			config.nodesOf, config.ID = c, fmt.Sprint("s", n)
			w := newHarness(t, config)
			w.ownership.others = make(map[ownership.Slot]bool)
			c.worlds = append(c.worlds, w)
			defer w.run(t)()
			l.worlds = append(l.worlds, w)
			l.gateways = append(l.gateways, w.gateway("g:1"))
			l.crews = append(l.crews, newCrew(w))
			l.heartbeats[n] = true
		}
		body(l)
		for _, w := range l.worlds {
			w.expectReconciled()
		}
	})
}

// land is several worlds.
type land struct {
	worlds   []*harness
	gateways []*gateway
	crews    []*crew
	// heartbeats are the schedulers that talk to others by their heartbeats.
	heartbeats map[int]bool
}

// put registers a function with all, and as the only one's whose number that is.
func (l *land) put(owner int, name string) *v1alpha1.Function {
	fn := newTestFunction(name, func(fn *v1alpha1.Function) { fn.Spec.Template.StartupTimeout.Duration = time.Minute })
	slot := ownership.SlotOf(string(fn.UID), 0)
	for n, w := range l.worlds {
		w.ownership.change(func() { w.ownership.others[slot] = n != owner })
		w.catalog.Put(entryOf(fn))
	}
	synctest.Wait()
	return fn
}

// heartbeat lets every scheduler that talks send a heartbeat to every other one.
func (l *land) heartbeat() {
	for i, from := range l.worlds {
		for j, to := range l.worlds {
			if i == j || !l.heartbeats[i] {
				continue
			}
			request := &controlwire.HeartbeatRequest{Scheduler: from.scheduler.shell.config.ID, CapacityRequests: from.scheduler.CapacityRequests(to.scheduler.shell.config.ID)}
			var made []*controlwire.CapacityFreed
			if l.heartbeats[j] {
				made = to.scheduler.receiveRequests(request)
			}
			from.scheduler.CapacityFreed(to.scheduler.shell.config.ID, made)
		}
	}
}

// work lets all instances work for a while.
func (l *land) work(d, start, execution time.Duration) {
	next := time.Now()
	for until := time.Now().Add(d); time.Now().Before(until); {
		if now := time.Now(); !now.Before(next) {
			l.heartbeat()
			next = now.Add(ownership.HeartbeatInterval)
		}
		for _, crew := range l.crews {
			crew.work(crew.w.scheduler.shell.config.Tick, start, execution)
		}
	}
}

func (l *land) evicted() (n int) {
	for _, crew := range l.crews {
		n += crew.evicted
	}
	return n
}

// The nodes are full of idle instances of some schedulers' functions. Calls of functions
// of another one, which has nothing to spare, are all answered, and no more instances go
// than they need.
func TestAllAreAnsweredThoughOnlyOtherSchedulersHaveIdleInstances(t *testing.T) {
	const start, execution = time.Second, 50 * time.Millisecond
	for name, tt := range map[string]struct{ worlds, idle, calls int }{
		"two schedulers":                  {2, 6, 6},
		"few calls":                       {2, 6, 1},
		"three, of which one has nothing": {3, 6, 5},
		"more calls than room":            {2, 6, 12},
	} {
		t.Run(name, func(t *testing.T) {
			inHarnesses(t, tt.worlds, 2, tt.idle/2, func(l *land) {
				for n := range tt.idle {
					l.gateways[0].offer(l.put(0, fmt.Sprint("idle-", n)), 1000+n)
				}
				l.work(5*time.Second, start, execution)
				if got := len(l.crews[0].answered); got != tt.idle {
					t.Fatalf("%d of %d functions that came before were answered", got, tt.idle)
				}
				asks := tt.worlds - 1
				for n := range tt.calls {
					l.gateways[asks].offer(l.put(asks, fmt.Sprint("f-", n)), n)
				}
				l.work(40*time.Second, start, execution)
				l.gateways[asks].expectRefused(controlwire.Refusal_REASON_UNSPECIFIED)
				if got := len(l.crews[asks].answered); got != tt.calls {
					t.Errorf("%d of %d calls were answered", got, tt.calls)
				}
				if got := l.evicted(); got > tt.calls {
					t.Errorf("%d instances were evicted for %d calls", got, tt.calls)
				}
			})
		})
	}
}

// Schedulers that know nothing of such wishes, or make no room, keep nobody waiting.
func TestOthersThatMakeNoRoomAreNotWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		silent []int
		reason controlwire.Refusal_Reason
		calls  []int
	}{
		"the only other one is of before":       {[]int{0}, controlwire.Refusal_REASON_NO_CAPACITY, []int{1}},
		"one is of before, and another one not": {[]int{1}, controlwire.Refusal_REASON_UNSPECIFIED, nil},
	} {
		t.Run(name, func(t *testing.T) {
			worlds := 1 + len(tt.silent) + (1 - len(tt.calls))
			inHarnesses(t, worlds, 1, 2, func(l *land) {
				for _, n := range tt.silent {
					l.heartbeats[n] = false
				}
				for n := range 2 {
					l.gateways[0].offer(l.put(0, fmt.Sprint("idle-", n)), 1000+n)
				}
				l.work(5*time.Second, time.Second, time.Millisecond)
				l.gateways[worlds-1].offer(l.put(worlds-1, "f"), 1)
				l.work(20*time.Second, time.Second, time.Millisecond)
				l.gateways[worlds-1].expectRefused(tt.reason, tt.calls...)
			})
		})
	}
}

// What was made for another scheduler is nobody's here for as long as it asks for it.
func TestRoomThatWasMadeForAnotherSchedulerIsKeptForIt(t *testing.T) {
	inHarness(t, fullNode(1), func(w *harness) {
		w.runtime.deaf = true
		g, idle := w.gateway("g:1"), w.put("idle")
		g.offer(idle, 1)
		a := w.ready(w.started(idle, 1)[0])
		a.pull(1, doneWith(1, time.Millisecond))
		w.after(3 * time.Second)
		a.heard()
		theirs, own := w.put("theirs"), w.put("own")
		asks := func(n uint32) (made []*controlwire.CapacityFreed) {
			request := &controlwire.HeartbeatRequest{Scheduler: "another"}
			if n > 0 {
				request.CapacityRequests = []*controlwire.CapacityRequest{{FunctionUid: string(theirs.UID), Instances: n, WaitedNs: 1e9}}
			}
			return w.scheduler.receiveRequests(request)
		}
		asks(2)
		w.ticks(1)
		a.expect("retire: made room for ns/theirs")
		made := asks(2)
		if len(made) != 1 || made[0].GetInstances() != 1 || !made[0].GetExhausted() {
			t.Errorf("room was made: %v; want one, and that there is no more", made)
		}
		g.offer(own, 2)
		a.obey()
		w.runtime.end(a.key, "done")
		for range 4 {
			asks(1)
			w.ticks(5)
		}
		w.started(own, 0)
		asks(0)
		w.ticks(2)
		w.started(own, 1)
	})
}

// Only a scheduler may ask for room, and only in its own name.
func TestWhoIsNoSchedulerAsksForNoRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		id      string
		trusted bool
		made    int
	}{
		"another scheduler":             {"another", true, 1},
		"a gateway":                     {"", true, 0},
		"a gateway that says it is one": {"another", false, 0},
		"itself":                        {"s0", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			config := fullNode(1)
			config.ID = "s0"
			inHarness(t, config, func(w *harness) {
				w.scheduler.shell.deps.IsScheduler = func(context.Context) bool { return tt.trusted }
				fn := w.put("f")
				ctx, hangUp := context.WithCancel(context.Background())
				defer hangUp()
				stream, err := w.client.Heartbeat(ctx)
				if err != nil {
					t.Fatal(err)
				}
				heartbeat := &controlwire.HeartbeatRequest{Scheduler: tt.id, CapacityRequests: []*controlwire.CapacityRequest{{FunctionUid: string(fn.UID), Instances: 1}}}
				var reply *controlwire.HeartbeatReply
				for range 2 {
					if err := stream.Send(heartbeat); err != nil {
						t.Fatal(err)
					}
					if reply, err = stream.Recv(); err != nil {
						t.Fatal(err)
					}
					w.ticks(1)
				}
				if got := len(reply.GetCapacityFreed()); got != tt.made {
					t.Errorf("room was made for %d", got)
				}
			})
		})
	}
}

// Another scheduler that falls silent is made no room for, and what was made is free.
func TestRoomOfASchedulerThatFellSilentIsFree(t *testing.T) {
	inHarness(t, fullNode(1), func(w *harness) {
		theirs, own, g := w.put("theirs"), w.put("own"), w.gateway("g:1")
		w.scheduler.receiveRequests(&controlwire.HeartbeatRequest{Scheduler: "another", CapacityRequests: []*controlwire.CapacityRequest{{FunctionUid: string(theirs.UID), Instances: 1}}})
		w.ticks(1)
		g.offer(own, 1)
		w.ticks(1)
		w.started(own, 0)
		w.after(capacity.PeerSilent)
		w.started(own, 1)
	})
}
