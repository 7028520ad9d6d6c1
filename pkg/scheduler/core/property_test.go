package core

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// drawn is a function to which random things happen, and what is true of it if all
// promises are kept.
type drawn struct {
	*rapid.T
	f    *Function
	spec Spec
	now  time.Time
	// calls are those that were let in and have not ended, and joined the instances,
	// with whether they were told to go.
	calls  map[invocation.ID]*drawnCall
	joined map[invocation.CID]bool
	// capacity is how many calls each joined instance can have, and reports are the last ones.
	capacity map[invocation.CID]int
	reports  map[string]LoanReport
	// pulls are the last ones of joined instances.
	pulls map[invocation.CID]*Pulled
	// arrived is that of the last view, and served what gateways had served then.
	arrived, served uint64
	// decided is what the last tick did, until that is concluded.
	decided *Decided
	// evictable and until are what Evictable returned when it was last asked.
	evictable []queue.IdleInstance
	until     time.Time
}

type drawnCall struct {
	ticket    invocation.Ticket
	holder    invocation.CID // "" while it waits
	handed    time.Time
	cancelled bool
	rebound   bool // an earlier holder has it, too
}

// ends are the ways in which calls ended in one step. Each has one.
type ends map[invocation.ID][]string

func (e ends) add(id invocation.ID, how string) { e[id] = append(e[id], how) }

// step carries out an event and holds what follows against the promises.
func (d *drawn) step(e Event) {
	before := d.f.Demand()
	effects := slices.Clone(d.f.Step(d.now, e))
	d.usage(e, ChangesUsage(e, effects, before, d.f.Demand()))
	ended := ends{}
	d.event(e, effects, ended)
	for _, effect := range effects {
		d.effect(effect, ended)
	}
	for id, c := range d.calls {
		known := d.f.queue.Contains(id)
		if !known && len(ended[id]) == 0 && !c.ticket.Deadline.After(d.now) {
			ended.add(id, "expired")
		}
		switch {
		case known && len(ended[id]) > 0:
			d.Fatalf("%T: call %d has ended (%v) and is in the queue", e, id[15], ended[id])
		case !known && len(ended[id]) != 1:
			d.Fatalf("%T: call %d ended in %d ways: %v", e, id[15], len(ended[id]), ended[id])
		case !known:
			delete(d.calls, id)
		case d.f.queue.IsWaiting(id):
			c.holder = ""
		case c.holder == "":
			d.Fatalf("%T: call %d is out with nobody", e, id[15])
		}
	}
	if d.f.activity.parked && d.f.Waiting() > 0 {
		d.Fatalf("%T: it rests while %d calls wait", e, d.f.Waiting())
	}
	d.sums(e)
}

// usage checks that what Evictable returned is true until it has to be asked again.
func (d *drawn) usage(e Event, changed bool) {
	idle, until := d.f.Evictable(d.now, 0)
	same := func(a, b queue.IdleInstance) bool { return a.CID == b.CID && a.Since.Equal(b.Since) }
	switch {
	case changed || !d.until.IsZero() && !d.now.Before(d.until):
		d.evictable, d.until = idle, until
	case !slices.EqualFunc(idle, d.evictable, same):
		d.Fatalf("%T: %v could be evicted, and without notice %v can", e, d.evictable, idle)
	}
}

// sums checks that the function counts right.
func (d *drawn) sums(e Event) {
	v, waiting, running := d.f.View(d.now), 0, 0
	for _, g := range d.f.reports.last {
		waiting += g.Waiting
		running += g.Running
	}
	switch {
	case v.Arrived < d.arrived || d.f.reports.served < d.served:
		d.Fatalf("%T: %d had come and gateways had served %d, and now %d and %d", e, d.arrived, d.served, v.Arrived, d.f.reports.served)
	case v.Arrived-v.Departed != uint64(v.Waiting):
		d.Fatalf("%T: %d came, %d have gone, and %d wait", e, v.Arrived, v.Departed, v.Waiting)
	case v.Busy > v.Instances:
		d.Fatalf("%T: %d of %d instances are busy", e, v.Busy, v.Instances)
	case waiting != d.f.reports.waiting || running != d.f.reports.running:
		d.Fatalf("%T: the reports come to %d waiting and %d running, and the sums are %d and %d", e, waiting, running, d.f.reports.waiting, d.f.reports.running)
	case d.f.hasCalls() && !d.f.idleSince.IsZero():
		d.Fatalf("%T: it has calls, and is idle since %v", e, d.f.idleSince)
	}
	d.arrived, d.served = v.Arrived, d.f.reports.served
	d.capacities(e, v.Lent)
}

// capacities checks that instances have no more tickets than they can, nor all of them more loans. One
// that drains has none.
func (d *drawn) capacities(e Event, lent int) {
	all, has := 0, lent
	for cid, draining := range d.joined {
		held := len(d.heldBy(cid))
		if held > d.capacity[cid] {
			d.Fatalf("%T: %s has %d calls, of %d", e, cid, held, d.capacity[cid])
		}
		if !draining {
			all, has = all+d.capacity[cid], has+held
		}
	}
	if has > all {
		d.Fatalf("%T: instances have %d calls and loans, of %d", e, has, all)
	}
}

// heldBy are the calls whose tickets an instance holds.
func (d *drawn) heldBy(cid invocation.CID) (held []invocation.ID) {
	for call := range byte(16) {
		if c := d.calls[drawnID(call)]; c != nil && c.holder == cid {
			held = append(held, drawnID(call))
		}
	}
	return held
}

// event notes what an event itself says of calls and instances.
func (d *drawn) event(e Event, effects []Effect, ended ends) {
	switch e := e.(type) {
	case *Offered:
		_, refused := AnswerOf[OfferRefused](effects)
		switch c := d.calls[e.Ticket.ID]; {
		case c != nil && !refused:
			c.cancelled = false
		case c == nil && !refused:
			d.calls[e.Ticket.ID] = &drawnCall{ticket: e.Ticket}
		}
	case *Ticked:
		d.decided = nil
	case *CallCancelled:
		d.cancel(e.ID, ended)
	case GatewaysAudited:
		for id, c := range d.calls {
			if c.holder == "" && !e.Connected(c.ticket.Gateway) && !d.f.queue.Contains(id) {
				d.cancel(id, ended)
			}
		}
	case *Pulled:
		d.pulled(e, ended)
	case LeaveRequested:
		if answer, _ := AnswerOf[LeaveAnswered](effects); answer.Granted {
			d.left(e.CID, ended)
		}
	case Left:
		d.left(e.CID, ended)
	}
}

// pulled notes what an instance says of its calls. What waits for a core is not claimed yet.
func (d *drawn) pulled(e *Pulled, ended ends) {
	for _, done := range e.Done {
		c := d.calls[done.ID]
		switch {
		case c == nil || c.holder != e.CID:
		case !done.Unclaimed:
			ended.add(done.ID, "done")
		case c.cancelled:
			ended.add(done.ID, "cancelled")
		}
	}
	if _, joined := d.joined[e.CID]; !joined || !e.Wants {
		return
	}
	if c := d.calls[d.awaits(e.CID)]; c != nil && c.holder == e.CID && c.ticket.ID != e.Awaits {
		c.handed = d.now
	}
	d.pulls[e.CID] = e
}

// awaits is the call of an instance that waits for a core, as its last pull says.
func (d *drawn) awaits(cid invocation.CID) (id invocation.ID) {
	if last := d.pulls[cid]; last != nil {
		id = last.Awaits
	}
	return id
}

// lends tells whether an instance keeps the place of a call that it is handed now: not on a busy
// node, if another instance is on a calm one.
func (d *drawn) lends(cid invocation.CID) bool {
	for other, last := range d.pulls {
		if d.pulls[cid].NodeBusy && !last.NodeBusy && !d.joined[other] {
			return false
		}
	}
	return !d.spec.Limited
}

func (d *drawn) cancel(id invocation.ID, ended ends) {
	switch c := d.calls[id]; {
	case c == nil:
	case c.holder == "":
		ended.add(id, "cancelled")
	default:
		c.cancelled = true
	}
}

// left notes what becomes of the calls of an instance that has left.
func (d *drawn) left(cid invocation.CID, ended ends) {
	for id, c := range d.calls {
		switch {
		case c.holder != cid:
		case c.cancelled:
			ended.add(id, "cancelled")
		case d.now.Sub(c.handed) >= d.f.config.ClaimGrace && d.awaits(cid) != id:
			ended.add(id, "claimed")
		}
	}
	delete(d.joined, cid)
	delete(d.pulls, cid)
}

// effect holds one effect against what went before.
func (d *drawn) effect(effect Effect, ended ends) {
	mustHaveJoined := func(cid invocation.CID) {
		if _, joined := d.joined[cid]; !joined {
			d.Fatalf("%T for %s, which has not joined", effect, cid)
		}
	}
	switch e := effect.(type) {
	case Connect:
		d.joined[e.CID] = false
	case Recall:
		mustHaveJoined(e.CID)
		if d.joined[e.CID] || e.Calls <= 0 || e.Calls > d.capacity[e.CID] {
			d.Fatalf("%+v, of at most %d; told to go: %v", e, d.capacity[e.CID], d.joined[e.CID])
		}
	case *HandOut:
		mustHaveJoined(e.CID)
		c := d.calls[e.Ticket.ID]
		switch {
		case d.joined[e.CID]:
			d.Fatalf("%s was told to go and is handed a call", e.CID)
		case c == nil || len(ended[e.Ticket.ID]) > 0:
			d.Fatalf("%s is handed call %d, which is not in", e.CID, e.Ticket.ID[15])
		case !c.ticket.Deadline.After(d.now):
			d.Fatalf("%s is handed call %d, which nobody waits for", e.CID, e.Ticket.ID[15])
		case e.Lent != d.lends(e.CID):
			d.Fatalf("%s is handed call %d, and keeps its place: %v", e.CID, e.Ticket.ID[15], e.Lent)
		case e.Rebound && (c.rebound || c.cancelled || c.holder == "" || c.holder == e.CID):
			d.Fatalf("%s is handed call %d, which %q has, once more: %v", e.CID, e.Ticket.ID[15], c.holder, c.rebound)
		}
		c.holder, c.handed, c.rebound = e.CID, d.now, e.Rebound
	case Refuse:
		for _, t := range e.Tickets {
			ended.add(t.ID, "refused")
		}
	case Drain:
		mustHaveJoined(e.CID)
		d.joined[e.CID] = true
	case Terminate:
		mustHaveJoined(e.CID)
	case Redirect:
		mustHaveJoined(e.CID)
		d.left(e.CID, ended)
	case *Decided:
		d.decided = e
		total, most := e.Observed.Created+e.Observed.Creating, e.Bounds.Max
		if most > 0 && e.Wanted() > max(0, most-total) {
			d.Fatalf("%d are wanted beside %d, of at most %d", e.Wanted(), total, most)
		}
		if missing := e.Missing(0); missing < e.Wanted() || most > 0 && missing > max(0, most-total) {
			d.Fatalf("%d are missing beside %d, of at most %d; %d are wanted", missing, total, most, e.Wanted())
		}
		if d.spec.Max > 0 && (most == 0 || most > d.spec.Max) {
			d.Fatalf("the bound is %d, of at most %d", most, d.spec.Max)
		}
	}
}

func (d *drawn) number(most int, of string) int { return rapid.IntRange(0, most).Draw(d.T, of) }

func (d *drawn) flag(of string) bool { return rapid.Bool().Draw(d.T, of) }

func (d *drawn) seconds(most int, of string) time.Duration {
	return time.Duration(d.number(most, of)) * time.Second
}

func (d *drawn) cid() invocation.CID {
	return rapid.SampledFrom([]invocation.CID{"1", "2", "3", "4"}).Draw(d.T, "cid")
}

func (d *drawn) id() invocation.ID { return drawnID(byte(d.number(15, "call"))) }

// drawnID is never zero: that is the ticket of no call.
func drawnID(call byte) invocation.ID { return invocation.ID{1, 15: call} }

// ticket is that of a new call, or of one that is in, perhaps with a new token.
func (d *drawn) ticket() invocation.Ticket {
	t := invocation.Ticket{
		ID: d.id(), Gateway: rapid.SampledFrom([]string{"g1", "g2"}).Draw(d.T, "gateway"),
		Arrived: d.now.Add(-d.seconds(1, "waited")), Deadline: d.now.Add(time.Second + d.seconds(20, "wanted")),
	}
	if c := d.calls[t.ID]; c != nil {
		t = c.ticket
	}
	t.Token = invocation.Token{byte(d.number(1, "token"))}
	return t
}

// observed is what a tick may see, right or wrong.
func (d *drawn) observed() Observed {
	creating := max(0, d.number(8, "creating")-4)
	return Observed{
		Created: d.number(6, "created"), Creating: creating, Awaited: min(creating, d.number(2, "awaited")),
		Room: d.number(5, "room") - 1, Failing: d.flag("failing"), Unconfirmed: d.flag("orphan"),
		KindStart: d.seconds(2, "start"),
	}
}

func (d *drawn) apply() {
	if decided := d.decided; decided != nil {
		d.decided = nil
		launched := min(decided.Wanted(), d.number(3, "launched"))
		d.step(&Applied{Decided: decided, Launched: launched, NoRoom: launched < decided.Wanted()})
	}
}

func (d *drawn) gateway() string { return rapid.SampledFrom([]string{"g1", "g2"}).Draw(d.T, "gateway") }

// loans are what an agent says, true or not.
func (d *drawn) loans() (loans []queue.Loan) {
	for range d.number(2, "loans") {
		loans = append(loans, queue.Loan{Gateway: d.gateway(), Calls: d.number(2, "calls")})
	}
	return loans
}

// report is mostly one that counts on.
func (d *drawn) report() {
	gateway := d.gateway()
	r := d.reports[gateway]
	r.Served += uint64(d.number(3, "served"))
	r.Executions += uint64(d.number(3, "executions"))
	r.ExecutionTime += d.seconds(2, "executed")
	r.Waiting, r.Running, r.Lent = d.number(3, "waiting"), d.number(2, "running"), d.number(3, "lent")
	if d.number(9, "from the beginning") == 9 {
		r = LoanReport{Waiting: r.Waiting}
	}
	d.reports[gateway] = r
	d.step(&Reported{Gateway: gateway, Stream: uint64(d.number(1, "stream")), Resumed: d.flag("resumed"), Report: r})
}

func (d *drawn) pull() {
	pulled := &Pulled{CID: d.cid(), Wants: d.flag("wants"), Credits: d.number(2, "credits"), Loans: d.loans(), Idle: d.seconds(1, "idle"), NodeBusy: d.flag("busy node")}
	if held := d.heldBy(pulled.CID); d.flag("awaits a core") {
		pulled.AwaitsCore = true
		pulled.Awaits = rapid.SampledFrom(append(held, invocation.ID{})).Draw(d.T, "awaited")
	}
	for id := byte(0); id < 16; id++ { // what it holds, and what it does not any more
		if c := d.calls[drawnID(id)]; c != nil && c.holder == pulled.CID || d.number(15, "other") == 15 {
			pulled.Done = []Done{{ID: drawnID(id), Execution: d.seconds(3, "execution"), Unclaimed: d.flag("unclaimed")}}
		}
	}
	d.step(pulled)
}

// work is a pull of an instance that says the truth: it polls, a call of it waits for a core, or it is
// done with one.
func (d *drawn) work() {
	p := &Pulled{CID: d.cid(), Wants: true}
	held := d.heldBy(p.CID)
	switch kind := d.number(2, "kind"); {
	case kind == 0 || len(held) == 0:
		p.Credits, p.NodeBusy = 2, d.flag("busy node")
	case kind == 1:
		p.NodeBusy, p.AwaitsCore, p.Awaits = d.flag("busy node"), true, rapid.SampledFrom(held).Draw(d.T, "awaited")
	default:
		p.Credits, p.Done = 1, []Done{{ID: rapid.SampledFrom(held).Draw(d.T, "done"), Execution: time.Second}}
	}
	d.step(p)
}

// randomEvent lets one random thing happen. Calls and pulls are the most frequent.
func (d *drawn) randomEvent() {
	switch d.number(24, "event") {
	case 0, 1, 2, 3:
		d.step(&Offered{Ticket: d.ticket(), Jitter: 0.5})
	case 4, 5, 6:
		d.pull()
	case 7, 8:
		e := Joined{CID: d.cid(), Capacity: 1 + d.number(1, "capacity"), Draining: d.number(5, "let go") == 5}
		if _, joined := d.joined[e.CID]; !joined {
			d.capacity[e.CID] = e.Capacity
		}
		d.step(e)
	case 9:
		d.now = d.now.Add(d.seconds(3, "pass"))
	case 10, 11:
		d.step(&Ticked{Observed: d.observed()})
		if d.flag("at once") {
			d.apply()
		}
	case 12, 13:
		d.apply()
	case 14:
		d.step(&CallCancelled{ID: d.id()})
	case 15:
		d.step(Left{CID: d.cid(), Involuntary: d.flag("involuntary")})
	case 16:
		d.step(LeaveRequested{CID: d.cid(), Idle: time.Duration(d.number(90, "minutes idle")) * time.Minute})
	case 17:
		d.step(EvictRequested{CID: d.cid(), IdleFor: time.Second})
	case 18:
		heard := d.flag("heard")
		d.step(GatewaysAudited{Connected: func(gateway string) bool { return heard || gateway == "g1" }})
	case 19:
		d.step(OwnershipChanged{Term: invocation.Term{Epoch: uint64(d.number(2, "epoch"))}})
	case 20:
		d.spec.Max, d.spec.Calls.Concurrency = d.number(3, "max"), 20*d.number(1, "limited")
		d.spec.Limited = d.spec.Calls.Concurrency > 0
		d.step(SpecChanged{Spec: d.spec})
	case 22, 23:
		d.report()
	case 24:
		d.step(GatewayGone{Gateway: d.gateway(), Stream: uint64(d.number(1, "stream"))})
	case 21:
		d.step(rapid.SampledFrom([]Event{
			Woken{}, Paused{}, InstanceEnded{}, AssignFailed{}, ActivityAudited{}, Started{Took: time.Second}, DrainRequested{CID: "1"},
			NoRoomFound{Refusal: invocation.Refusal{Reason: invocation.RefusedNoCapacity}}, StartFailed{},
		}).Draw(d.T, "other"))
	}
}

// Every ticket that was let in is done with by an instance, refused, cancelled, expired, or
// claimed by an instance that left; and no two of it. Calls and loans of instances are within
// their capacity. What came only rises. No instance that has not joined, or
// was told to go, is handed any. No more instances are wanted than there may be. A function
// in which calls wait does not rest.
func TestWhateverHappensTheCorePromisesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawn(t, false)
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			d.randomEvent()
		}
		d.end()
	})
}

// Instances of busy nodes, whose calls wait for cores, are beside ones of calm nodes, and calls go to both.
func TestWhateverWaitsForACoreTheCorePromisesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawn(t, false)
		for _, cid := range []invocation.CID{"1", "2", "3", "4"} {
			d.capacity[cid] = 1 + d.number(1, "capacity")
			d.step(Joined{CID: cid, Capacity: d.capacity[cid]})
		}
		for range rapid.IntRange(50, 100).Draw(t, "events") {
			switch rapid.SampledFrom([]string{"call", "work", "work", "work", "other"}).Draw(t, "event") {
			case "call":
				d.step(&Offered{Ticket: d.ticket(), Jitter: 0.5})
			case "work":
				d.work()
			default:
				d.randomEvent()
			}
		}
		d.end()
	})
}

// end lets all that there is come to its end.
func (d *drawn) end() {
	if d.flag("closed") {
		d.step(Closed{Reason: "deleted", Refusal: invocation.Refusal{Reason: invocation.RefusedUnknownFunction}})
	}
	d.now = d.now.Add(time.Minute)
	for _, gateway := range []string{"g1", "g2"} {
		d.step(GatewayGone{Gateway: gateway, Stream: 0})
		d.step(GatewayGone{Gateway: gateway, Stream: 1})
	}
	for cid := range d.joined {
		d.step(Left{CID: cid})
	}
	d.step(&Ticked{Observed: Observed{Room: -1}})
	if len(d.calls) > 0 {
		d.Fatalf("%d calls have not ended", len(d.calls))
	}
	if n := d.f.Waiting() + d.f.reports.running + d.f.View(d.now).Lent; n > 0 {
		d.Fatalf("%d calls or loans are left, of nobody", n)
	}
}

func newDrawn(t *rapid.T, learns bool) *drawn {
	d := &drawn{T: t, now: start, calls: map[invocation.ID]*drawnCall{}, joined: map[invocation.CID]bool{}, capacity: map[invocation.CID]int{}, reports: map[string]LoanReport{}, pulls: map[invocation.CID]*Pulled{}}
	d.spec = testSpec(func(s *Spec) {
		s.Max, s.Min, s.Learns = d.number(3, "max"), d.number(1, "min"), learns
		if d.flag("Horizon") {
			s.Decide = autoscaler.Horizon
		}
	})
	d.f = New(&Config{Tick: 100 * time.Millisecond, MaxQueued: 6, ClaimGrace: 2 * time.Second, Executions: 3}, d.spec)
	d.step(OwnershipChanged{Term: invocation.Term{Epoch: 1}})
	return d
}

// A function that is called every half an hour plans how long to keep its last instance, so what may be
// evicted depends on since when it has no calls.
func TestWhatMayBeEvictedChangesWithNotice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDrawn(t, true)
		for range 12 {
			d.f.floorPolicy.CalledAfter(30*time.Minute + 30*time.Second)
		}
		d.step(Started{Took: time.Second})
		d.capacity["1"] = 1
		d.step(Joined{CID: "1", Capacity: 1})
		d.step(&Pulled{CID: "1", Wants: true, Credits: 1})
		for range rapid.IntRange(1, 100).Draw(t, "events") {
			d.now = d.now.Add(time.Duration(max(0, d.number(40, "minutes")-10)) * time.Minute)
			if d.flag("report") {
				d.report()
			} else {
				d.randomEvent()
			}
		}
	})
}
