package scheduler

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// inSharedHarness is inHarness with instances that outlive the scheduler.
func inSharedHarness(t *testing.T, body func(w *harness)) {
	t.Helper()
	config := defaults()
	config.shared = true
	inHarness(t, config, body)
}

// A tick may be the first to notice that a slot is served here.
func TestATickThatTakesAFunctionOverLetsItsInstancesSayHello(t *testing.T) {
	config := defaults()
	config.shared = true
	w := newHarness(t, config)
	fn := newTestFunction("f", minInstances(1))
	w.runtime.existing = []provisioner.Existing{{CID: "00000007-000001", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: true}}
	w.scheduler.functionChanged(catalog.Event{Key: fn.Key(), UID: string(fn.UID), Entry: entryOf(fn)})
	if c := w.scheduler.ticker.evaluate(w.scheduler.shell.lookup(string(fn.UID))); c != nil {
		t.Errorf("%d instances are wanted beside those that there are", c.Wanted())
	}
}

// An instance that is taken over has started once, and the scheduler before has counted it. One that was still
// starting then starts here.
func TestInstancesThatAreTakenOverHaveStarted(t *testing.T) {
	for name, tt := range map[string]struct {
		ran    bool
		starts float64
	}{"one that ran": {true, 0}, "one that was starting": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			inSharedHarness(t, func(w *harness) {
				w.ownership.lose("other:1")
				fn := w.put("f")
				w.runtime.existing = []provisioner.Existing{{CID: "00000008-000001", Revision: fn.Revision(), Node: "n", Started: time.Now(), Ran: tt.ran}}
				w.ownership.silence()
				w.after(core.AuditEvery)
				a := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "00000008-000001"})
				a.pull(1)
				w.after(0)
				if got := w.scrape("function")["instances_started_total{f,ns}"]; got != tt.starts {
					t.Errorf("%v starts are counted, want %v", got, tt.starts)
				}
				if logged := strings.Contains(w.log.String(), "an instance is ready"); logged != (tt.starts > 0) {
					t.Errorf("the log says that it is ready: %t", logged)
				}
				w.expectCounts(fn, provisioner.Counts{Created: 1})
			})
		})
	}
}

func TestInstancesGoToTheNewOwner(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		spec := w.started(fn, 1)[0]
		a := w.ready(spec)
		g.offer(fn, 1, 2)
		a.expect("ticket 0001 at g:1")
		w.ownership.lose("other:1")
		w.after(core.AuditEvery)
		a.expect("moved to other:1")
		// Also the ticket that may have been claimed: then the refusal
		// comes too late, and nobody minds.
		g.expectRefused(controlwire.Refusal_REASON_NOT_OWNER, 1, 2)
		w.expectCounts(fn, provisioner.Counts{})
		if len(w.runtime.stopped) != 0 || len(w.runtime.released) != 1 {
			t.Errorf("stopped %v, released %v", w.runtime.stopped, w.runtime.released)
		}
		w.ticks(20)
		w.started(fn, 0)
		// One that comes here all the same is sent on.
		b := w.hello(spec)
		b.expect("moved to other:1")
		b.expectEnded(codes.OK)
	})
}

func TestOnlyWhoServesAFunctionTellsOfIt(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.ticks(1)
		w.ready(w.started(fn, 1)[0])
		g.offer(fn, 1)
		if got := w.scrape("function"); got["instances{f,ns,busy}"] != 1 || got["instances_launched_total{f,ns}"] != 1 {
			t.Errorf("the owner tells %v", got)
		}
		w.ownership.lose("other:1")
		w.after(core.AuditEvery)
		w.expectSeries(map[string]float64{})
	})
}

func TestWhoDoesNotKnowTheOwnerSaysSo(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.own(false)
		a := w.connectHello(&agentwire.Hello{FunctionUid: "uid-of-a-function-that-came-later", Cid: "c"})
		a.expect("moved to ")
		a.expectEnded(codes.OK)
	})
}

func TestANewOwnerTakesOverTheInstances(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.own(false)
		fn, g := w.put("f", minInstances(2)), w.gateway("g:1")
		ago := time.Now().Add(-time.Hour)
		w.runtime.existing = []provisioner.Existing{
			{CID: "0000-1", Revision: fn.Revision(), Node: "n", Started: ago},
			{CID: "0000-2", Revision: fn.Revision(), Node: "n", Started: ago},
		}
		w.ownership.own(true)
		w.after(core.AuditEvery)
		w.ticks(2)
		w.started(fn, 0)
		w.expectCounts(fn, provisioner.Counts{Creating: 2})
		a := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "0000-1"})
		a.pull(1)
		g.offer(fn, 1)
		a.expect("ticket 0001 at g:1")
		w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "0000-2"}).pull(1)
		w.ticks(1)
		w.started(fn, 0)
		w.expectCounts(fn, provisioner.Counts{Created: 2})
	})
}

func TestAnAdoptedInstanceThatNeverConnectsIsStopped(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		w.ownership.own(false)
		fn := w.put("f", minInstances(1))
		w.runtime.existing = []provisioner.Existing{{CID: "0000-1", Revision: fn.Revision(), Node: "n", Started: time.Now()}}
		w.runtime.alive[keyOf(string(fn.UID), "0000-1")] = make(chan struct{})
		w.ownership.own(true)
		w.after(14 * time.Second)
		w.started(fn, 0)
		w.after(3 * time.Second)
		// It is no sign that the function does not start.
		w.started(fn, 1)
		if w.instances.Observe(string(fn.UID)).Failing {
			t.Error("the function counts as one that does not start")
		}
	})
}

func TestAnInstanceThatWasSeenLateIsTakenOverAtItsHello(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f")
		a := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "0000-1"})
		a.expectEnded(codes.NotFound)
		w.runtime.existing = []provisioner.Existing{{CID: "0000-1", Revision: fn.Revision(), Node: "n", Started: time.Now()}}
		b := w.connectHello(&agentwire.Hello{FunctionUid: string(fn.UID), Cid: "0000-1"})
		b.pull(1)
		synctest.Wait()
		w.expectCounts(fn, provisioner.Counts{Created: 1})
	})
}

// watcher is a stream of facts.
type watcher struct {
	w       *harness
	replies chan *controlwire.WatchReply
	// dropFunctions says that only what is said of warm pools is expected.
	dropFunctions bool
}

func (w *harness) watch() *watcher {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w.t.Cleanup(cancel)
	stream, err := w.client.Watch(ctx, &controlwire.WatchRequest{})
	if err != nil {
		w.t.Fatal(err)
	}
	v := &watcher{w: w, replies: make(chan *controlwire.WatchReply, 100)}
	go recvAll(stream.Recv, func(r *controlwire.WatchReply) { v.replies <- r }, func(error) { cancel() })
	return v
}

// expect expects exactly these replies by now.
func (v *watcher) expect(want ...*controlwire.WatchReply) {
	v.w.t.Helper()
	synctest.Wait()
	var got []*controlwire.WatchReply
	for len(v.replies) > 0 {
		reply := <-v.replies
		if v.dropFunctions {
			if reply.Functions = nil; reply.GetWarmPools() == nil {
				continue
			}
		}
		got = append(got, reply)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		v.w.t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestAWatcherIsToldWhatChanged(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		v := w.watch()
		v.expect(&controlwire.WatchReply{Welcome: &controlwire.Welcome{Protocol: 1, Release: buildinfo.Version}})
		fn, g := w.put("f", minInstances(1)), w.gateway("g:1")
		w.after(watchEvery)
		facts := &controlwire.FunctionFacts{FunctionUid: "uid-f", Namespace: "ns", Name: "f", Revision: fn.Revision(), Generation: 1, Creating: 1}
		v.expect(&controlwire.WatchReply{Functions: []*controlwire.FunctionFacts{facts}})
		w.after(5 * watchEvery)
		v.expect()

		a := w.ready(w.started(fn, 1)[0])
		g.offer(fn, 1)
		a.pull(0, &agentwire.Done{InvocationId: idBytes(1), ExecNs: int64(3 * time.Millisecond)})
		g.offer(fn, 2)
		w.after(watchEvery)
		facts.Creating, facts.Created, facts.Queued, facts.MeanExecNs = 0, 1, 1, int64(3*time.Millisecond)
		// It does not poll, and so it runs a call that another scheduler knows of.
		facts.Busy = 1
		facts.MeanStartNs, facts.Started = int64(2900*time.Millisecond), true // it was launched by a tick
		v.expect(&controlwire.WatchReply{Functions: []*controlwire.FunctionFacts{facts}})

		w.ownership.lose("other:1")
		w.after(watchEvery)
		v.expect(&controlwire.WatchReply{Released: []string{"uid-f"}})
	})
}

// A disruption budget goes by what is wanted, so an instance that goes leaves no gap until the next tick.
func TestAWatcherIsToldOfInstancesThatTheMinimumLacks(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f", minInstances(2))
		w.ticks(1)
		var ready []*agent
		for _, in := range w.started(fn, 2) {
			ready = append(ready, w.ready(in))
		}
		w.ticks(1)
		ready[0].goodbye(agentwire.Goodbye_REASON_DONE, "evicted")
		synctest.Wait()
		now := w.scheduler.reporter.facts(w.scheduler.shell.lookup(string(fn.UID)))
		if now.created != 1 || now.creating != 1 {
			t.Errorf("%d are created and %d are on their way", now.created, now.creating)
		}
	})
}

// The refusal of its calls makes no room: its condition would change with each of them.
func TestAFunctionLacksRoomUntilThereIsSome(t *testing.T) {
	inHarness(t, fullNode(1), func(w *harness) {
		busy, fn, g := w.put("busy"), w.put("f"), w.gateway("g:1")
		g.offer(busy, 1)
		in := w.started(busy, 1)[0]
		w.ready(in)
		lacks := func() bool { return w.scheduler.reporter.facts(w.scheduler.shell.lookup(string(fn.UID))).noRoom != "" }
		for n := 2; n < 4; n++ {
			g.offer(fn, n)
			w.ticks(2)
			if !lacks() {
				t.Fatal("a call waits without room, and the watcher gets no reason")
			}
			w.after(w.scheduler.shell.config.NoRoomPatience + time.Second)
			g.expectRefused(controlwire.Refusal_REASON_NO_CAPACITY, n)
			w.after(2 * core.RoomRetry)
			if !lacks() {
				t.Error("its call was refused, and it lacks room no more")
			}
		}
		w.runtime.end(keyOf(string(busy.UID), in.CID), "killed")
		w.after(core.RoomRetry + w.scheduler.shell.config.Tick)
		if lacks() {
			t.Error("a node has room, and it lacks some")
		}
	})
}

func TestAFunctionWithAnInstanceLacksNoRoomUnlessACallWaits(t *testing.T) {
	inHarness(t, fullNode(1), func(w *harness) {
		fn, g := w.put("f"), w.gateway("g:1")
		g.offer(fn, 1)
		a := w.ready(w.started(fn, 1)[0])
		g.offer(fn, 2)
		w.ticks(5)
		lacks := func() bool { return w.scheduler.reporter.facts(w.scheduler.shell.lookup(string(fn.UID))).noRoom != "" }
		if !lacks() {
			t.Fatal("a call waits, and it lacks no room")
		}
		a.pull(1, doneWith(1, time.Second))
		w.ticks(2)
		if lacks() {
			t.Error("no call waits, and it lacks room")
		}
	})
}

func TestAnInstanceThatDidNotStartHasFinished(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		a := w.hello(w.started(fn, 1)[0])
		a.goodbye(agentwire.Goodbye_REASON_START_TIMED_OUT, "it took too long")
		synctest.Wait()
		if !slices.Contains(w.runtime.finished, a.key) {
			t.Error("its pod has the time for calls that it never had")
		}
	})
}

func TestAWatcherIsToldWhyInstancesDoNotStart(t *testing.T) {
	inSharedHarness(t, func(w *harness) {
		fn := w.put("f", minInstances(1))
		w.ticks(1)
		v := w.watch()
		synctest.Wait()
		<-v.replies
		w.runtime.exits <- provisioner.Exit{
			FunctionUID: string(fn.UID), CID: w.started(fn, 1)[0].CID,
			Code: v1alpha1.ReasonImagePullFailed, Reason: "no such image: shop/hello:2",
		}
		w.after(watchEvery)
		got := (<-v.replies).GetFunctions()[0]
		if p := got.GetProblem(); p.GetReason() != v1alpha1.ReasonImagePullFailed || p.GetRetryAfterNs() <= 0 || p.GetSinceNs() <= 0 {
			t.Errorf("problem: %v", p)
		}
		want := []*controlwire.Event{{
			Reason: v1alpha1.ReasonImagePullFailed, Message: "an instance did not start: no such image: shop/hello:2", Warning: true, Count: 1,
		}}
		if diff := cmp.Diff(want, got.GetEvents(), protocmp.Transform()); diff != "" {
			t.Errorf("happenings (-want +got):\n%s", diff)
		}
	})
}

func TestEventsAreCountedAndBounded(t *testing.T) {
	var h eventRing
	now := time.Unix(1000, 0)
	for i := range 3 * maxEvents {
		h.add(unitEvent{reason: "R", message: string(rune('a' + i))}, now)
	}
	h.add(unitEvent{reason: "Again"}, now)
	h.add(unitEvent{reason: "Again"}, now)
	all, next := h.since(0, now)
	if len(all) != maxEvents || all[len(all)-1].GetCount() != 2 {
		t.Errorf("%d happenings, the last %v", len(all), all[len(all)-1])
	}
	if old, _ := h.since(0, now.Add(1)); len(old) != 0 {
		t.Errorf("too old to be told: %v", old)
	}
	if news, _ := h.since(next, time.Time{}); len(news) != 0 {
		t.Errorf("news: %v", news)
	}
	h.add(unitEvent{reason: "Again"}, now)
	if news, _ := h.since(next, time.Time{}); len(news) != 1 || news[0].GetCount() != 3 {
		t.Errorf("news: %v", news)
	}
}

func idBytes(n int) []byte {
	id := idOf(n)
	return id[:]
}
