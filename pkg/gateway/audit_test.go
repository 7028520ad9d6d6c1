package gateway

import (
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// unstarted is a gateway that nobody runs.
func unstarted(t *testing.T) *Gateway {
	t.Helper()
	config := DefaultConfig()
	config.ClaimAddr = "127.0.0.1:1"
	g, err := New(config, Deps{Catalog: catalog.New(), Router: ownership.NewStatic(ownership.Owner{ID: "one", Addr: "one"})})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// admitted is a call of a function without a name whose request was read.
func (g *Gateway) admitted(spec core.Spec) *call {
	g.admitter.admit(reservation{}, admission.Limits{})
	spec.Admitted, spec.MaxQueueTime, spec.Timeout = time.Now(), time.Minute, time.Minute
	c := &call{
		callState: callState{
			id: invocation.NewID(time.Now()), function: &v1alpha1.Function{}, to: destination{unit: &v1alpha1.Function{}}, changed: make(chan struct{}, 1), invocation: *core.New(spec),
		},
		whole: true, reservation: reservationRef{admitter: g.admitter, holders: 1},
	}
	c.client = client{state: &c.callState, request: httptest.NewRequest("GET", "/", nil)}
	c.client.body.ended.Store(true)
	c.waiting = core.Waiting[*call]{Call: c, Since: spec.Admitted}
	g.calls.add(c)
	return c
}

// queue lets a call wait under the token 1.
func queue(v *core.Invocation) core.Decision { return v.Queue(invocation.Token{1}, time.Now()) }

// waiting is a call that waits, of a gateway that nobody runs.
func waiting(t *testing.T, spec core.Spec) (*Gateway, *call) {
	t.Helper()
	g := unstarted(t)
	c := g.admitted(spec)
	g.shell.step(c, queue, problem{})
	return g, c
}

// claimedByEnded is a call whose instance has ended unheard, of a gateway that nobody runs.
func claimedByEnded(t *testing.T, spec core.Spec) (*Gateway, *call) {
	t.Helper()
	g, c := waiting(t, spec)
	now, a := time.Now(), &attempt{conn: &agentConn{cid: "cid"}, call: c}
	if _, err := c.claim(a, func(v *core.Invocation) (core.Grant, error) { return v.Claim(now, invocation.Token{1}, "cid") }, now); err != nil {
		t.Fatal(err)
	}
	g.shell.taken(c)
	a.ended.Store(true)
	return g, c
}

// A scheduler does not count a ticket against the function's limits that says it is not the first.
// So a ticket is not said to be the second because no stream took the first, or because a scheduler
// could not take it, but because a scheduler had admitted the first.
func TestTheFirstTicketThatASchedulerTakesIsTheFirst(t *testing.T) {
	g, c := waiting(t, core.Spec{})
	unit := c.destination().unit
	g.deps.Catalog.(*catalog.Catalog).Put(&rollout.Entry{
		Function: &v1alpha1.Function{}, Units: []*v1alpha1.Function{unit}, Routes: []rollout.Route{{Weight: 100, Unit: unit}},
	})
	g.shell.step(c, func(v *core.Invocation) core.Decision { return v.Ask(time.Now()) }, problem{}) // nobody runs links
	g.shell.links.setRunning(true)
	now := time.Now()
	offers := func() (again []bool) {
		now = now.Add(2 * core.ReofferAfter)
		g.shell.audit(now, noneMoved)
		for _, ticket := range g.shell.links.to(c.destination().slot()).pending.offers {
			again = append(again, ticket.GetAgain())
		}
		return again
	}
	if got := offers(); len(got) != 0 {
		t.Fatalf("a link that is not open has %v", got)
	}
	g.shell.links.to(c.destination().slot()).setOpen(new(linkStream))
	if got := offers(); !slices.Equal(got, []bool{false}) {
		t.Fatalf("the first that a stream takes: again %v", got)
	}
	g.shell.onRefusal(c.id, "", invocation.Refusal{Reason: invocation.RefusedNotOwner})
	if got := offers(); !slices.Equal(got, []bool{false, false}) {
		t.Fatalf("after a scheduler could not take it: again %v", got)
	}
	if got := offers(); !slices.Equal(got, []bool{false, false, true}) {
		t.Errorf("after a scheduler may have kept it: again %v", got)
	}
	for range 2 {
		g.shell.onRefusal(c.id, "", invocation.Refusal{Reason: invocation.RefusedNotOwner, Admitted: true})
	}
	if got := offers(); !slices.Equal(got, []bool{false, false, true, true}) {
		t.Errorf("after a scheduler had admitted it: again %v", got)
	}
}

func TestAnAuditAnswersACallWhoseInstanceEndedUnheard(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{})
	g.shell.audit(time.Now(), noneMoved)
	if c.answered() {
		t.Fatal("answered by the first audit, which may have been a moment too early")
	}
	g.shell.audit(time.Now().Add(core.ReofferEvery), noneMoved)
	if _, p := c.answer(); p == nil || p.Reason != problems.InstanceLost || p.Executed != invocation.ExecutedMaybe {
		t.Errorf("the answer is %+v", p)
	}
	if n := len(g.calls.snapshot()); n != 0 {
		t.Errorf("%d calls are kept", n)
	}
}

// The place of a whole answer is freed before the call has the answer, and that may take a while.
func TestAnAnswerThatHasComeIsNotLostWhileItsPlaceIsFreed(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{})
	a := c.currentAttempt()
	a.ended.Store(false)
	a.conn.gateway, a.conn.shell, a.conn.running = g, g.shell, map[uint32]*attempt{a.wire: a}
	a.pool, a.lent = g.shell.pools.locked(c.destination(), c.function.Key()), true
	a.conn.lendTo(a.pool)
	a.pool.core.Began(a.conn.lender)
	handled := make(chan error, 1)
	go func() { handled <- a.onHead(callwire.Head{Status: 200, ContentLength: -1, Whole: true}) }()
	for !a.ended.Load() {
		runtime.Gosched()
	}
	now := time.Now()
	g.shell.audit(now, noneMoved)
	g.shell.audit(now.Add(core.ReofferEvery), noneMoved)
	a.pool.mu.Unlock()
	if err := <-handled; err != nil {
		t.Error(err)
	}
	if _, head, _ := c.takeHead(); head == nil {
		_, p := c.answer()
		t.Errorf("the answer was dropped for %v", p)
	}
}

// What its instance does is all that matters to a call that runs. If it waits again, it
// waits for a revision that there is.
func TestACallThatRunsIsMovedOnlyWhenItWaitsAgain(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{MayRepeat: true})
	another := &v1alpha1.Function{}
	another.UID, another.Spec.Template.Timeout.Duration = "another", time.Minute
	g.deps.Catalog.(*catalog.Catalog).Put(&rollout.Entry{
		Function: &v1alpha1.Function{}, Units: []*v1alpha1.Function{another}, Routes: []rollout.Route{{Weight: 100, Unit: another}},
	})
	for n := range time.Duration(2) {
		if g.shell.audit(time.Now().Add(n*core.ReofferEvery), noneMoved); c.destination().unit == another {
			t.Fatal("moved while it runs")
		}
	}
	g.shell.audit(time.Now().Add(2*core.ReofferAfter), noneMoved)
	waits := false
	c.sendTicket(func(slot ownership.Slot, ticket *agentwire.Ticket) bool {
		if waits = true; ticket.GetFunctionUid() != "another" || slot != (destination{unit: another}).slot() {
			t.Errorf("it waits with %v at slot %d", ticket, slot)
		}
		return false
	})
	if !waits {
		t.Error("it does not wait")
	}
}

func TestAnAuditQueuesARepeatableCallWhoseInstanceEndedUnheard(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{MayRepeat: true})
	g.shell.audit(time.Now(), noneMoved)
	g.shell.audit(time.Now().Add(core.ReofferEvery), noneMoved)
	if _, waits := c.invocation.Ticket(time.Now()); !waits {
		t.Error("it does not wait")
	}
	if len(c.earlier) != 1 || c.earlier[0].why != core.InstanceLost || !c.earlier[0].ran {
		t.Errorf("noted of the first attempt: %+v", c.earlier)
	}
}

// One of them may be an audit, and the other one the attempt that gives the call back. The call waits
// for the revision that it was last moved to.
func TestACallThatTwoGoroutinesQueueWaitsOnce(t *testing.T) {
	for name, to := range map[string]types.UID{"for one revision": "a", "for two revisions": "b"} {
		t.Run(name, func(t *testing.T) {
			g := unstarted(t)
			first := g.busyRevision("a")
			last := first
			if to != "a" {
				last = g.busyRevision(to)
			}
			c := g.admitted(core.Spec{})
			decided := c.decide(queue, problem{})
			_, moved := c.move(first, time.Now())
			if _, again := c.move(last, time.Now()); !decided.Wait || !moved.Wait || !again.Wait {
				t.Fatal("not every decision lets it wait")
			}
			for range 3 {
				g.shell.carryOut(c, decided)
			}
			p := g.shell.pools.locked(last, invocation.FunctionKey{})
			waiting := p.core.Report().Waiting
			p.mu.Unlock()
			if waiting != 1 || c.pool.Load() != p {
				t.Fatalf("%d calls wait; for the revision that it was moved to: %t", waiting, c.pool.Load() == p)
			}
			g.shell.sweep(time.Now().Add(core.AskAllAfter)) // which asks for each of them
			g.shell.dequeue(c)
			if p.core.Report().Waiting != 0 || p.core.Remove(&c.waiting) {
				t.Error("it waits on once it was taken out")
			}
		})
	}
}

// busyRevision is a revision whose only place, a loan, is busy, and that a call asks for already:
// further calls wait without a ticket.
func (g *Gateway) busyRevision(uid types.UID) destination {
	unit := &v1alpha1.Function{}
	unit.UID = uid
	at := destination{unit: unit}
	p := g.shell.pools.locked(at, invocation.FunctionKey{})
	defer p.mu.Unlock()
	p.core.Began(core.NewLender("cid", &agentConn{cid: "cid"}))
	p.core.Add(&core.Waiting[*call]{}, time.Now(), false)
	return at
}

// It was moved when a goroutine was about to let it wait for the revision before.
func TestACallDoesNotWaitForARevisionThatItHasLeft(t *testing.T) {
	g := unstarted(t)
	left, to := g.busyRevision("a"), g.busyRevision("b")
	c := g.admitted(core.Spec{})
	c.decide(queue, problem{})
	c.move(to, time.Now())
	if _, done := g.shell.enqueueAt(c, left); done || c.pool.Load() != nil {
		t.Error("it waits for the revision that it has left")
	}
	if _, done := g.shell.enqueueAt(c, to); !done || c.pool.Load() == nil {
		t.Error("it does not wait for the revision that it was moved to")
	}
}

// A sweep looks at no function: it comes ten times a second, and most pools are unused.
func TestAPoolIsDroppedSomeTimeAfterItsRevision(t *testing.T) {
	g := unstarted(t)
	p := g.shell.pools.locked(destination{unit: &v1alpha1.Function{}}, invocation.FunctionKey{})
	p.core.CountExecution(time.Second, 0)
	p.mu.Unlock()
	there := func() bool { return len(g.shell.pools.all()) > 0 }
	if g.shell.dropGone(); !there() {
		t.Error("dropped before a scheduler has heard of all its calls")
	}
	p.sent = p.core.Report()
	if g.shell.sweep(time.Now()); !there() {
		t.Error("dropped by a sweep")
	}
	if g.shell.dropGone(); there() {
		t.Error("not dropped")
	}
}

// A function that was called stays open, in its latest version also without another call.
func TestAPoolKeepsTheEntryOfItsFunction(t *testing.T) {
	g, _ := claimedByEnded(t, core.Spec{})
	functions := g.deps.Catalog.(*catalog.Catalog)
	put := func(generation int64) invocation.FunctionKey {
		fn := &v1alpha1.Function{}
		fn.Name, fn.UID, fn.Generation = "f", "uid", generation
		functions.Put(rollout.Alone(fn))
		return fn.Key()
	}
	key := put(1)
	entry, _ := functions.Get(key)
	p := g.shell.pools.locked(destination{entry.Units[0], entry}, key)
	p.mu.Unlock()
	if runtime.GC(); p.entry != entry {
		t.Error("the entry of the last call is not kept")
	}
	put(2)
	g.shell.dropGone()
	runtime.GC()
	if latest, _ := functions.Get(key); p.entry != latest || latest.Function.Generation != 2 {
		t.Errorf("kept is generation %d", p.entry.Function.Generation)
	}
}
