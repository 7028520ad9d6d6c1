package gateway

import (
	"runtime"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// claimedByEnded is a call whose instance has ended unheard, of a gateway that nobody runs.
func claimedByEnded(t *testing.T, spec core.Spec) (*Gateway, *call) {
	t.Helper()
	config := DefaultConfig()
	config.ClaimAddr = "127.0.0.1:1"
	g, err := New(config, Deps{Catalog: catalog.New(), Router: ownership.NewStatic(ownership.Owner{ID: "one", Addr: "one"})})
	if err != nil {
		t.Fatal(err)
	}
	spec.Admitted, spec.MaxQueueTime, spec.Timeout = time.Now(), time.Minute, time.Minute
	c := &call{
		callState: callState{
			id: invocation.NewID(time.Now()), function: &v1alpha1.Function{}, to: destinationOf(nil, &v1alpha1.Function{}), changed: make(chan struct{}, 1), invocation: core.New(spec),
		},
		reservation: newReservationRef(func() {}),
	}
	c.waiting = core.Waiting[*call]{Call: c, Since: spec.Admitted}
	g.calls.add(c)
	g.dispatch.step(c, func(v *core.Invocation) core.Decision { return v.Queue(invocation.Token{1}, time.Now()) }, problem{})
	now, a := time.Now(), &attempt{conn: &agentConn{cid: "cid"}, call: c}
	if _, err := c.claim(a, func(v *core.Invocation) (core.Grant, error) { return v.Claim(now, invocation.Token{1}, "cid") }, now); err != nil {
		t.Fatal(err)
	}
	g.dispatch.taken(c)
	a.ended.Store(true)
	return g, c
}

func TestAnAuditAnswersACallWhoseInstanceEndedUnheard(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{})
	g.dispatch.audit(time.Now(), noSlot)
	if c.answered() {
		t.Fatal("answered by the first audit, which may have been a moment too early")
	}
	g.dispatch.audit(time.Now(), noSlot)
	if _, p := c.answer(); p == nil || p.Reason != problems.InstanceLost || p.Executed != invocation.ExecutedMaybe {
		t.Errorf("the answer is %+v", p)
	}
	if n := len(g.calls.snapshot()); n != 0 {
		t.Errorf("%d calls are kept", n)
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
	for range 2 {
		if g.dispatch.audit(time.Now(), noSlot); c.destination().unit == another {
			t.Fatal("moved while it runs")
		}
	}
	g.dispatch.audit(time.Now().Add(2*core.ReofferAfter), noSlot)
	if o, waits := c.nextOffer(); !waits || o.ticket.GetFunctionUid() != "another" || o.slot != destinationOf(nil, another).slot {
		t.Errorf("waits %t with %v", waits, o.ticket)
	}
}

func TestAnAuditQueuesARepeatableCallWhoseInstanceEndedUnheard(t *testing.T) {
	g, c := claimedByEnded(t, core.Spec{MayRepeat: true})
	g.dispatch.audit(time.Now(), noSlot)
	g.dispatch.audit(time.Now(), noSlot)
	if _, waits := c.invocation.Ticket(); !waits {
		t.Error("it does not wait")
	}
	if len(c.earlier) != 1 || c.earlier[0].why != core.InstanceLost || !c.earlier[0].ran {
		t.Errorf("noted of the first attempt: %+v", c.earlier)
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
	p := g.dispatch.pools.locked(destinationOf(entry, entry.Units[0]), key)
	p.mu.Unlock()
	if runtime.GC(); p.entry != entry {
		t.Error("the entry of the last call is not kept")
	}
	put(2)
	g.dispatch.dropIfGone(p)
	runtime.GC()
	if latest, _ := functions.Get(key); p.entry != latest || latest.Function.Generation != 2 {
		t.Errorf("kept is generation %d", p.entry.Function.Generation)
	}
}
