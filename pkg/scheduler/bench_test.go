package scheduler

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

const idleFunctions = 10_000

// benchHarness is a scheduler without Run whose node never fills up, with functions as the
// catalog has them: each is a unit.
func benchHarness(b testing.TB, functions int, changes ...func(*v1alpha1.Function)) (*harness, []*v1alpha1.Function) {
	config := defaults()
	config.node = 1 << 40
	w := newHarness(b, config)
	list := make([]*v1alpha1.Function, functions)
	for i := range list {
		list[i] = newTestFunction("f"+strconv.Itoa(i), changes...)
		list[i].Annotations = map[string]string{v1alpha1.AnnotationRevision: "00001", v1alpha1.AnnotationFunctionUID: string(list[i].UID)}
	}
	return w, list
}

func (w *harness) register(functions []*v1alpha1.Function) {
	for _, fn := range functions {
		w.scheduler.functionChanged(catalog.Event{Key: fn.Key(), UID: string(fn.UID), Entry: entryOf(fn)})
	}
	w.scheduler.ticker.tick()
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkTickOverIdleFunctions is one tick with 10,000 functions that nobody
// calls. B/function is the memory that the scheduler and the provisioner take for
// each: without an instance; with four windows of a schedule; having been called and
// with an idle instance (its stream not counted); and having been called often enough
// to have learnt from its idle times.
func BenchmarkTickOverIdleFunctions(b *testing.B) {
	measure := func(b *testing.B, use func(w *harness, fn *v1alpha1.Function, n int), changes ...func(*v1alpha1.Function)) {
		w, functions := benchHarness(b, idleFunctions, changes...)
		before := heapBytes()
		w.register(functions)
		for n, fn := range functions {
			use(w, fn, n)
		}
		w.scheduler.ticker.tick()
		perFunction := float64(heapBytes()-before) / idleFunctions
		if n := len(w.scheduler.shell.units.active); n != 0 {
			b.Fatalf("%d functions are active", n)
		}
		b.ReportAllocs()
		for b.Loop() {
			w.scheduler.ticker.tick()
		}
		b.ReportMetric(perFunction, "B/function")
		runtime.KeepAlive(functions)
	}
	b.Run("never called", func(b *testing.B) {
		measure(b, func(*harness, *v1alpha1.Function, int) {})
	})
	b.Run("with a schedule", func(b *testing.B) {
		measure(b, func(*harness, *v1alpha1.Function, int) {},
			window("0 8 * * 1-5", 10, 5), window("0 18 * * 1-5", 2, 20), window("30 11 * * *", 1, 3), window("0 0 1 * *", 24, 9))
	})
	b.Run("with an idle instance", func(b *testing.B) {
		measure(b, func(w *harness, fn *v1alpha1.Function, n int) {
			useOnce(b, w, fn, n)
			w.runtime.forget()
		})
	})
	b.Run("having learnt", func(b *testing.B) {
		measure(b, func(w *harness, fn *v1alpha1.Function, _ int) {
			f := w.scheduler.shell.lookup(string(fn.UID))
			w.scheduler.calledEvery(f, 20, func(i int) time.Duration { return time.Duration(i) * 13 * time.Minute })
		}, learning)
	})
}

// useOnce lets a function be called once by an instance that stays.
func useOnce(b testing.TB, w *harness, fn *v1alpha1.Function, n int) {
	f := w.scheduler.shell.lookup(string(fn.UID))
	id := idOf(n)
	w.scheduler.offers.offer(&offerStream{gateway: "g:1"}, &agentwire.Ticket{
		InvocationId: id[:], FunctionUid: f.uid, RemainingNs: int64(time.Hour),
	})
	w.scheduler.ticker.pauses = core.PauseDetector{} // a slow machine did not stand still
	w.scheduler.ticker.runNow(f)
	in := w.instances.Instances(f.uid)[0]
	w.scheduler.joinDeaf(f, in.CID)
	w.instances.Connect(in.Key)
	w.instances.Pulled(in.Key)
	for _, done := range [][]core.Done{nil, {{ID: id, Execution: time.Millisecond}}} {
		if refused, is := stepFor[core.PullRefused](w.scheduler.shell, f, &core.Pulled{CID: in.CID, Wants: true, Credits: 1, Done: done}); is {
			b.Fatal(refused.Why)
		}
	}
}

func (r *fakeRuntime) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started, r.taken = nil, 0
	clear(r.alive)
}

// BenchmarkDecision is one tick's decision for a function that has calls and
// enough instances on their way.
func BenchmarkDecision(b *testing.B) {
	w, functions := benchHarness(b, 1)
	w.register(functions)
	f := w.scheduler.shell.lookup(string(functions[0].UID))
	stream := &offerStream{gateway: "g:1"}
	for n := range 100 {
		id := idOf(n)
		w.scheduler.offers.offer(stream, &agentwire.Ticket{InvocationId: id[:], FunctionUid: f.uid, RemainingNs: int64(time.Hour)})
	}
	w.scheduler.ticker.runNow(f)
	b.ReportAllocs()
	for b.Loop() {
		w.scheduler.ticker.runNow(f)
	}
}

// BenchmarkCreationDecision is one tick with 1,000 functions that are called and
// have no instance, with a runtime that does nothing.
func BenchmarkCreationDecision(b *testing.B) {
	w, functions := benchHarness(b, 1000)
	w.register(functions)
	ctx, cancel := context.WithCancel(b.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.instances.Run(ctx, w.scheduler) })
	stream := &offerStream{gateway: "g:1"}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		for n, fn := range functions {
			id := idOf(n)
			w.scheduler.offers.offer(stream, &agentwire.Ticket{InvocationId: id[:], FunctionUid: string(fn.UID), RemainingNs: int64(time.Hour)})
		}
		b.StartTimer()
		w.scheduler.ticker.tick()
		b.StopTimer()
		w.dispose(b, functions)
		b.StartTimer()
	}
	b.ReportMetric(float64(b.N*len(functions))/b.Elapsed().Seconds(), "decisions/s")
	cancel()
	running.Wait()
}

// dispose makes functions as they were before their first calls.
func (w *harness) dispose(b *testing.B, functions []*v1alpha1.Function) {
	for n, fn := range functions {
		w.scheduler.shell.lookup(string(fn.UID)).cancelled(w.scheduler, idOf(n))
		instances := w.instances.Instances(string(fn.UID))
		if len(instances) != 1 {
			b.Fatalf("%d instances of %s were launched, want 1", len(instances), fn.Name)
		}
		w.instances.End(instances[0].Key, provisioner.Ending{})
		for w.instances.Observe(string(fn.UID)).Counts != (provisioner.Counts{}) {
			runtime.Gosched()
		}
	}
	w.runtime.forget()
	w.scheduler.ticker.tick()
}

// BenchmarkTickOfFullNodes is one tick with 1,000 functions whose calls wait and find no
// room on 1,000 nodes: where nothing can make room; with five instances on each node that
// are idle and may not go yet; and with such as were told to go and take their time. ms/tick
// and MB/tick are what a tick takes and allocates.
func BenchmarkTickOfFullNodes(b *testing.B) {
	const nodes, functions, idle = 1000, 1000, 5000
	measure := func(b *testing.B, idle int, evictAfter time.Duration) {
		config := defaults()
		config.node, config.nodes, config.CreateRate = 50, nodes, 0
		config.NoRoomPatience, config.EvictAfter = time.Hour, evictAfter
		if idle > 0 {
			config.node = int64(100 * idle / nodes)
		}
		w := newHarness(b, config)
		others := make([]*v1alpha1.Function, idle)
		for i := range others {
			others[i] = newTestFunction("idle" + strconv.Itoa(i))
		}
		w.register(others)
		for n, fn := range others {
			useOnce(b, w, fn, functions+n)
			if n%1000 == 999 {
				w.scheduler.ticker.tick()
			}
		}
		w.runtime.forget()
		w.offerOneOfEach(functions)
		w.scheduler.ticker.tick()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.ReportAllocs()
		for b.Loop() {
			w.scheduler.ticker.tick()
		}
		runtime.ReadMemStats(&after)
		if n := len(w.scheduler.shell.units.active); n < functions {
			b.Fatalf("%d functions are active, want %d", n, functions)
		}
		b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/tick")
		b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/1e6, "MB/tick")
	}
	b.Run("nothing idle", func(b *testing.B) { measure(b, 0, time.Second) })
	b.Run("idle, and may not go", func(b *testing.B) { measure(b, idle, time.Hour) })
	b.Run("idle, and told to go", func(b *testing.B) { measure(b, idle, time.Nanosecond) })
}

// offerOneOfEach registers so many functions of one shape, and offers a call of each.
func (w *harness) offerOneOfEach(functions int) {
	list := make([]*v1alpha1.Function, functions)
	for i := range list {
		list[i] = newTestFunction("f" + strconv.Itoa(i))
	}
	w.register(list)
	stream := &offerStream{gateway: "g:1"}
	for n, fn := range list {
		id := idOf(n)
		w.scheduler.offers.offer(stream, &agentwire.Ticket{InvocationId: id[:], FunctionUid: string(fn.UID), RemainingNs: int64(time.Hour)})
	}
}

// BenchmarkTickOfBusyNodes is one tick with 2,000 functions of one shape that have calls, on 1,000 full
// nodes whose instances say that they are busy.
func BenchmarkTickOfBusyNodes(b *testing.B) {
	const nodes, functions = 1000, 2000
	config := defaults()
	config.node, config.nodes, config.CreateRate, config.NoRoomPatience = 50, nodes, 0, time.Hour
	w := newHarness(b, config)
	for _, n := range w.instances.Nodes() {
		w.scheduler.shell.busyNodes.hear(n.Name, true)
	}
	w.offerOneOfEach(functions)
	w.scheduler.ticker.tick()
	b.ReportAllocs()
	for b.Loop() {
		w.scheduler.ticker.tick()
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/tick")
}
