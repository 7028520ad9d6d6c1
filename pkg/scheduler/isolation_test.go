package scheduler

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// neighbours is a world in which instances start and run calls by themselves. Only
// the scheduler is real; gateways and agents take no time.
type neighbours struct {
	*harness
	gateway          *offerStream
	start, execution time.Duration
	next             uint64

	mu      sync.Mutex
	offered map[invocation.ID]call
	// took are the times from the offer to the end of the call, by namespace.
	took map[string][]time.Duration
}

type call struct {
	namespace string
	at        time.Time
}

// instance is an instance that runs one call at a time.
type instance struct {
	n   *neighbours
	f   *unit
	cid invocation.CID
}

// run runs a call that the instance is handed.
func (i instance) run(reply *agentwire.PullReply) error {
	if t := reply.GetTicket(); t != nil {
		id, _ := invocation.IDFromBytes(t.GetInvocationId())
		time.AfterFunc(i.n.execution, func() {
			i.n.ended(id)
			i.pull(core.Done{ID: id, Execution: i.n.execution})
		})
	}
	return nil
}

func (i instance) pull(done ...core.Done) {
	i.n.scheduler.shell.step(i.f, &core.Pulled{CID: i.cid, Wants: true, Credits: 1, Done: done})
}

func (n *neighbours) ended(id invocation.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.offered[id]
	n.took[c.namespace] = append(n.took[c.namespace], time.Since(c.at))
}

func (n *neighbours) call(fn *v1alpha1.Function) {
	var id invocation.ID
	n.next++
	binary.BigEndian.PutUint64(id[:], n.next)
	n.mu.Lock()
	n.offered[id] = call{fn.Namespace, time.Now()}
	n.mu.Unlock()
	n.scheduler.offers.offer(n.gateway, &agentwire.Ticket{
		InvocationId: id[:], FunctionUid: string(fn.UID), RemainingNs: int64(time.Minute),
	})
}

// begin lets instances that were launched start.
func (n *neighbours) begin(specs []provisioner.InstanceSpec) {
	for _, spec := range specs {
		time.AfterFunc(n.start, func() {
			f := n.scheduler.shell.lookup(string(spec.Function.UID))
			key := keyOf(f.uid, spec.CID)
			p := &pullStream{unit: f}
			p.prepare(n.scheduler.shell, key, agentInfo{}, deaf{}, 16)
			n.scheduler.shell.streams.register(&p.agentStream)
			in, _ := n.instances.Lookup(key)
			_ = p.join(in, 1, core.AgentCurrent)
			n.instances.Pulled(key)
			i := instance{n, f, spec.CID}
			p.replies.SendBy(i.run)
			i.pull()
		})
	}
}

// run is one run of both namespaces for a time: the quiet one calls a function that
// it has called all the time, and every fifth of a second a function for the first
// time; the noisy one calls each of its functions in turn.
func (n *neighbours) run(length time.Duration, noise int) {
	of := func(namespace string) func(fn *v1alpha1.Function) {
		return func(fn *v1alpha1.Function) {
			fn.Namespace = namespace
		}
	}
	warm := n.put("warm", of("quiet"), minInstances(3))
	cold := make([]*v1alpha1.Function, 200)
	for i := range cold {
		cold[i] = n.put(fmt.Sprint("cold", i), of("quiet"))
	}
	noisy := make([]*v1alpha1.Function, 1000)
	for i := range noisy {
		noisy[i] = n.put(fmt.Sprint("noisy", i), of("noisy"))
	}
	for ms := range int(length / time.Millisecond) {
		n.after(time.Millisecond)
		n.begin(n.runtime.take())
		if ms < 3000 {
			continue // the warm instances start
		}
		if ms%50 == 0 {
			n.call(warm)
		}
		if ms%200 == 0 {
			n.call(cold[ms/200])
		}
		for k := ms * noise / 1000; k < (ms+1)*noise/1000; k++ {
			n.call(noisy[k%len(noisy)])
		}
	}
	n.after(5 * time.Second)
}

// quiet runs both namespaces and returns the p99 of the quiet one, and how often an
// order of the noisy one was put off.
func quiet(t *testing.T, noise int) (p99 time.Duration, calls int, deferred float64) {
	config := defaults()
	config.CreateRate, config.CreateBurst = 100, 200
	config.node = 10_000_000
	inHarness(t, config, func(w *harness) {
		n := &neighbours{
			harness: w, start: time.Second, execution: 50 * time.Millisecond,
			offered: make(map[invocation.ID]call), took: make(map[string][]time.Duration),
			gateway: &offerStream{gateway: "g:1", refusals: make(chan *controlwire.Refusal, 1)},
		}
		w.scheduler.shell.gateways.register(n.gateway)
		n.run(15*time.Second, noise)
		took := n.took["quiet"]
		slices.Sort(took)
		p99, calls = took[len(took)*99/100], len(took)
		for series, value := range w.scrape("function") {
			if strings.HasPrefix(series, "launches_deferred_total{noisy") {
				deferred += value
			}
		}
	})
	return p99, calls, deferred
}

// A burst of one namespace does not delay another one's calls: neither those of warm
// functions, whose queues are their own, nor cold starts, which share the rate at
// which instances may be created.
func TestBurstOfOneNamespaceLeavesAnotherAlone(t *testing.T) {
	base, calls, _ := quiet(t, 20)
	burst, callsInBurst, deferred := quiet(t, 2000)
	ratio := float64(burst) / float64(base)
	t.Logf("burst=100x victim_p99_base=%v victim_p99_burst=%v ratio=%.2f calls=%d launches_deferred=%v", base, burst, ratio, callsInBurst, deferred)
	if callsInBurst != calls {
		t.Errorf("%d calls of the quiet namespace were served in the burst, %d without", callsInBurst, calls)
	}
	if ratio > 1.5 {
		t.Errorf("the p99 of the quiet namespace is %.2f times its baseline, want at most 1.5", ratio)
	}
	if deferred == 0 {
		t.Error("no order was put off: the burst did not use the rate up")
	}
}
