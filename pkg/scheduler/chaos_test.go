package scheduler

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// Gateways, instances and people do random things. At every step, no function
// that waits for something may be asleep, and none that could have an instance
// may be left without one; in the end, every call has been run or refused, and
// when the functions are gone nothing is left of them.
func TestWhateverHappensNoTicketIsForgotten(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			config := defaults()
			config.node = 300 + 100*int64(seed%5)
			inHarness(t, config, func(w *harness) { runChaos(w, seed) })
		})
	}
}

const (
	chaosFunctions = 5
	chaosSteps     = 600
	chaosStep      = 20 * time.Millisecond
)

// chaos is the truth about calls, as their gateways know it, and those who make
// it.
type chaos struct {
	*harness
	rand     *rand.Rand
	calm     atomic.Bool // nothing bad happens any more
	agents   sync.WaitGroup
	joined   uint64
	gateways []*gateway
	specs    []*v1alpha1.Function
	needy    [chaosFunctions]need

	mu    sync.Mutex
	calls map[invocation.ID]*chaosCall
	next  int
}

// chaosCall is one call. It waits while final is empty.
type chaosCall struct {
	n       int
	fn      *v1alpha1.Function
	gateway int
	offered time.Time
	final   string
}

func runChaos(w *harness, seed uint64) {
	c := &chaos{harness: w, rand: rand.New(rand.NewPCG(seed, 1)), calls: make(map[invocation.ID]*chaosCall)}
	for i := range 3 {
		c.gateways = append(c.gateways, w.gateway(fmt.Sprint("g:", i)))
	}
	for i := range chaosFunctions {
		c.specs = append(c.specs, c.newFunction(i, 0))
	}
	for step := range chaosSteps {
		c.act()
		c.step(step)
	}
	c.calm.Store(true)
	w.ownership.own(true)
	for step := range 180 * int(time.Second/chaosStep) {
		if c.waiting() == 0 {
			break
		}
		c.step(step)
	}
	for _, call := range c.calls {
		if call.final == "" {
			w.t.Errorf("call %d of %s waits forever", call.n, call.fn.UID)
		}
	}
	c.finish()
}

// newFunction registers the i-th function, in a random shape.
func (c *chaos) newFunction(i, incarnation int) *v1alpha1.Function {
	return c.put(fmt.Sprint("f", i), func(fn *v1alpha1.Function) {
		fn.UID = types.UID(fmt.Sprintf("uid-%d-%d", i, incarnation))
		fn.Spec.Template.Concurrency = 1 + c.rand.Int32N(3)
		fn.Spec.Template.Timeout.Duration = 2 * time.Second
		fn.Annotations = map[string]string{wellknown.AnnotationAlgorithm: autoscaler.Names()[c.rand.IntN(len(autoscaler.Names()))]}
		fn.Spec.Scaling.MinInstances = c.rand.Int32N(2)
		fn.Spec.Scaling.ScaleDown.IdleTimeout.Duration = 2 * time.Second
		fn.Spec.Scaling.ScaleDown.LastInstanceIdleTimeout.Duration = 3 * time.Second
		if c.rand.IntN(2) == 0 {
			maxInstances(1 + c.rand.Int32N(3))(fn)
		}
	})
}

// act does one random thing.
func (c *chaos) act() {
	i := c.rand.IntN(chaosFunctions)
	switch dice := c.rand.IntN(100); {
	case dice < 25:
		c.offerSome(i, 1+c.rand.IntN(6))
	case dice < 28:
		c.cancelOne()
	case dice < 30:
		g := c.rand.IntN(len(c.gateways))
		c.gateways[g].hangUp()
		c.gateways[g] = c.gateway(fmt.Sprint("g:", g))
	case dice < 32:
		changed := c.specs[i].DeepCopy()
		revision(changed.Generation + 1)(changed)
		c.specs[i] = changed
		c.catalog.Put(entryOf(changed))
	case dice < 33:
		c.catalog.Remove(c.specs[i].Key())
		c.specs[i] = c.newFunction(i, int(c.specs[i].Generation)*1000+c.next)
	case dice < 34:
		c.ownership.own(false)
	case dice < 40:
		c.ownership.own(true)
	}
}

func (c *chaos) offerSome(i, n int) {
	c.mu.Lock()
	var ids []int
	g := c.rand.IntN(len(c.gateways))
	for range n {
		c.next++
		c.calls[idOf(c.next)] = &chaosCall{n: c.next, fn: c.specs[i], gateway: g, offered: time.Now()}
		ids = append(ids, c.next)
	}
	c.mu.Unlock()
	c.gateways[g].offerFor(c.specs[i], time.Hour, ids...)
}

func (c *chaos) cancelOne() {
	c.mu.Lock()
	var chosen *chaosCall
	for _, call := range c.calls {
		if call.final == "" && (chosen == nil || call.n < chosen.n) {
			chosen = call
		}
	}
	if chosen != nil {
		chosen.final = "cancelled"
	}
	c.mu.Unlock()
	if chosen != nil {
		c.gateways[chosen.gateway].cancel(chosen.fn, chosen.n)
	}
}

// claim is an agent's claim of a call.
func (c *chaos) claim(id invocation.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[id]
	if call == nil || call.final != "" {
		return false
	}
	call.final = "run"
	return true
}

func (c *chaos) waiting() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.calls {
		if call.final == "" {
			n++
		}
	}
	return n
}

// step lets a little time pass, lets instances begin that were launched, does
// what gateways do all the time, and looks whether all is well.
func (c *chaos) step(step int) {
	c.after(chaosStep)
	for _, spec := range c.runtime.take() {
		c.joined++
		r := rand.New(rand.NewPCG(c.joined, c.rand.Uint64()))
		c.agents.Go(func() { newChaosAgent(c, spec, r).live() })
	}
	for _, g := range c.gateways {
		for _, r := range g.refused() {
			c.refused(r)
		}
	}
	if step%12 == 0 {
		c.offerAgain()
	}
	synctest.Wait()
	c.expectNobodyIsAsleep()
	c.expectNobodyIsStarved()
}

func (c *chaos) refused(r *controlwire.Refusal) {
	switch r.GetReason() {
	case controlwire.Refusal_REASON_NOT_OWNER, controlwire.Refusal_REASON_UNKNOWN_FUNCTION:
		return // offered again
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[invocation.ID(r.GetInvocationId())]; call.final == "" {
		call.final = r.GetReason().String()
	}
}

// offerAgain offers what has waited for a second, unless its function is gone.
func (c *chaos) offerAgain() {
	now := time.Now()
	var due []*chaosCall
	c.mu.Lock()
	for _, call := range c.calls {
		switch entry, exists := c.catalog.Get(call.fn.Key()); {
		case call.final != "":
		case !exists || entry.Units[0].UID != call.fn.UID:
			call.final = "deleted"
		case now.Sub(call.offered) >= time.Second:
			call.offered = now
			due = append(due, call)
		}
	}
	c.mu.Unlock()
	for _, call := range due {
		c.gateways[call.gateway].offerFor(call.fn, time.Hour, call.n)
	}
}

// expectNobodyIsAsleep expects that ticks look at every function that waits for
// something, as soon as its slot is known to be owned.
func (c *chaos) expectNobodyIsAsleep() {
	for _, f := range c.scheduler.shell.all() {
		counts, waiting := c.instances.Observe(f.uid).Counts, f.waitingTickets()
		tooFew := f.served() && counts.Created+counts.Creating < int(f.fn().Spec.Scaling.MinInstances)
		if !c.scheduler.shell.units.isActive(f) && (waiting > 0 || tooFew) {
			c.t.Fatalf("%s is asleep with %d waiting and %+v", f.uid, waiting, counts)
		}
	}
}

// need is since when a function could have an instance and has none.
type need struct {
	uid      string
	since    time.Time
	launched int
}

// node is the only node.
func (c *chaos) node() placement.Node {
	nodes := c.instances.Candidates(newTestFunction("any")).Nodes
	return nodes[0]
}

// expectNobodyIsStarved expects that a function with calls and without any
// instance is launched one within two ticks, if it may have one and there is
// room.
func (c *chaos) expectNobodyIsStarved() {
	_, owned := c.ownership.Epoch(0)
	node := c.node()
	for i, fn := range c.specs {
		uid := string(fn.UID)
		f := c.scheduler.shell.lookup(uid)
		counts, totals := c.instances.Observe(uid).Counts, c.scheduler.reporter.Totals(uid)
		failing := c.instances.Observe(uid).Failing
		room := c.instances.Requests(fn).Plus(node.Requested).MilliCPU <= node.Allocatable.MilliCPU
		needs := owned && room && !failing && f != nil && f.waitingTickets() > 0 && counts.Created+counts.Creating == 0
		if last := c.needy[i]; !needs || last.uid != uid || last.launched != totals.Launched {
			c.needy[i] = need{uid: uid, since: time.Now(), launched: totals.Launched}
		} else if starved := time.Since(last.since); starved > 2*c.scheduler.shell.config.Tick {
			c.t.Fatalf("%s has calls, no instance, and room for one, since %v", uid, starved)
		}
	}
}

// finish removes everything and expects that nothing is left.
func (c *chaos) finish() {
	for _, fn := range c.specs {
		c.catalog.Remove(fn.Key())
	}
	for range 30 * int(time.Second/chaosStep) {
		c.step(1)
	}
	c.agents.Wait()
	for _, g := range c.gateways {
		g.hangUp()
	}
	synctest.Wait()
	s := c.scheduler
	if n := len(s.shell.all()) + len(s.shell.units.active) + len(s.shell.gateways.byGateway); n != 0 {
		c.t.Errorf("left: %d functions, %d of them active, %d gateways", len(s.shell.all()), len(s.shell.units.active), len(s.shell.gateways.byGateway))
	}
	if left := c.node().Requested; left.MilliCPU != 0 {
		c.t.Errorf("%+v is still requested", left)
	}
	c.expectSeries(map[string]float64{})
	outcomes := make(map[string]int)
	for _, call := range c.calls {
		outcomes[call.final]++
	}
	c.t.Logf("%d calls: %v; %d instances", len(c.calls), outcomes, c.joined)
}
