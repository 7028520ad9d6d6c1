package scheduler

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// population is a function with many instances, each with a stream, of which all ask for a
// call if they are idle.
type population struct {
	*harness
	f       *unit
	gateway *offerStream
	streams []*pullStream
	next    uint64
}

func newPopulation(b *testing.B, instances int, idle bool) *population {
	w, functions := benchHarness(b, 1, minInstances(int32(instances)))
	w.register(functions)
	c := &population{harness: w, f: w.scheduler.shell.lookup(string(functions[0].UID)), gateway: &offerStream{gateway: "g:1"}}
	w.instances.LaunchOn(functions[0], invocation.Term{Epoch: 7}, instances-len(w.instances.Instances(c.f.uid)), func() (string, bool) { return "n", true })
	all := w.instances.Instances(c.f.uid)
	slices.SortFunc(all, func(a, b provisioner.Instance) int { return cmp.Compare(a.CID, b.CID) })
	for _, in := range all {
		p := &pullStream{unit: c.f}
		p.prepare(w.scheduler.shell, in.Key, agentInfo{}, deaf{}, 1024)
		p.replies.SendBy(func(*agentwire.PullReply) error { return nil })
		if err := p.join(in, 1, core.AgentCurrent); err != nil {
			b.Fatal(err)
		}
		c.streams = append(c.streams, p)
		if idle {
			p.ask(b)
		}
	}
	return c
}

// ask asks for one call, with what became of the last one.
func (p *pullStream) ask(b *testing.B, done ...*agentwire.Done) {
	if err := p.pull(&agentwire.Pull{Credits: 1, Done: done}); err != nil {
		b.Fatal(err)
	}
}

func (c *population) ticket() *agentwire.Ticket {
	c.next++
	id := make([]byte, 16)
	binary.BigEndian.PutUint64(id, c.next)
	return &agentwire.Ticket{InvocationId: id, FunctionUid: c.f.uid, RemainingNs: int64(time.Hour)}
}

// BenchmarkCrowd is what a function's calls and instances cost when it has few
// instances and when it has many: an offer that has to wait, with its cancellation; an
// offer that an instance takes, and its next pull; a ping; a request to leave that is
// refused. It prints how much longer each takes with 10,000 instances than with 10,
// each at its best of five.
func BenchmarkCrowd(b *testing.B) {
	const few, many = 10, 10_000
	for _, step := range []struct {
		name string
		idle bool
		do   func(b *testing.B, c *population, n int)
	}{
		{"offer", false, func(_ *testing.B, c *population, _ int) {
			t := c.ticket()
			c.scheduler.offers.offer(c.gateway, t)
			c.scheduler.offers.cancel(c.gateway, &controlwire.Cancellation{InvocationId: t.GetInvocationId(), FunctionUid: c.f.uid})
		}},
		{"pull", true, func(b *testing.B, c *population, _ int) {
			t := c.ticket()
			c.scheduler.offers.offer(c.gateway, t)
			p := c.streams[0] // the first in order is the one that gets it
			p.ask(b, &agentwire.Done{InvocationId: t.GetInvocationId(), ExecNs: 1e6})
		}},
		{"ping", true, func(_ *testing.B, c *population, n int) {
			p := c.streams[n%few]
			p.recordReport(&agentwire.AgentReport{Calls: uint64(n), ResidentBytes: 1 << 23})
			p.pong()
		}},
		{"leave", true, func(b *testing.B, c *population, n int) {
			p := c.streams[n%few]
			if err := p.requestLeave(time.Second); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		best := make(map[int]time.Duration)
		for _, instances := range []int{few, many} {
			c := newPopulation(b, instances, step.idle)
			b.Run(fmt.Sprint(step.name, "/", instances), func(b *testing.B) {
				for n := 0; b.Loop(); n++ {
					step.do(b, c, n)
				}
			})
			best[instances] = bestOf(func(n int) { step.do(b, c, n) })
		}
		fmt.Fprintf(os.Stdout, "%s_ns_10=%d %s_ns_10000=%d %s_ratio=%.2f\n", step.name, best[few].Nanoseconds(),
			step.name, best[many].Nanoseconds(), step.name, float64(best[many])/float64(best[few]))
	}
}

// bestOf is how long one step takes, in the fastest of some rounds: others use the
// machine as well.
func bestOf(step func(n int)) time.Duration {
	const rounds, steps = 5, 20_000
	best := time.Duration(1 << 62)
	for range rounds {
		begun := time.Now()
		for n := range steps {
			step(n)
		}
		best = min(best, time.Since(begun)/steps)
	}
	return best
}

// BenchmarkReofferInAnyOrder is how long a new owner takes over 10,000 calls that wait
// at a gateway, which offers them in no order. Others wait for no more than one at a
// time: longest is the longest that one took.
func BenchmarkReofferInAnyOrder(b *testing.B) {
	const waiting = 10_000
	config := defaults()
	config.MaxQueued, config.node = waiting, 50
	w := newHarness(b, config)
	fn := newTestFunction("f", func(fn *v1alpha1.Function) { fn.Spec.Scaling.MaxInstances = new(int32) })
	w.register([]*v1alpha1.Function{fn})
	c := &population{harness: w, f: w.scheduler.shell.lookup(string(fn.UID)), gateway: &offerStream{gateway: "g:1"}}
	tickets := make([]*agentwire.Ticket, waiting)
	for n := range tickets {
		tickets[n] = c.ticket()
		tickets[n].WaitedNs = int64(time.Duration(n+1) * time.Millisecond)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(waiting, func(i, j int) { tickets[i], tickets[j] = tickets[j], tickets[i] })
	best := time.Duration(1 << 62)
	for b.Loop() {
		w.scheduler.refuseWaiting(c.f)
		begun := time.Now()
		w.scheduler.offers.process(c.gateway, &controlwire.OfferRequest{Offers: tickets})
		best = min(best, time.Since(begun))
		if n := c.f.waitingTickets(); n != waiting {
			b.Fatalf("%d wait, want %d", n, waiting)
		}
	}
	fmt.Fprintf(os.Stdout, "reoffer_tickets=%d reoffer_ms=%.1f\n", waiting, float64(best.Microseconds())/1000)
}
