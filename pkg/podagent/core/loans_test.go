package core

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lentPlaces plays an agent between a scheduler, gateways and a function. Frames between the
// agent and its gateways are under way for as long as chance says, in both directions.
type lentPlaces struct {
	t    *rapid.T
	core *Core
	now  time.Time
	wake time.Time
	p    Params

	pulled, held int
	loans        []Loan // by the last Pull
	draining     bool
	// session is that of the scheduler that answers; 0 if none does. dialled is the one that is being made.
	session, dialled Session
	// returned are credits that a gateway has given back twice, which the agent lends it again.
	returned Lend
	conns    map[Conn]*lentConn
	running  []Attempt
	runs     map[Attempt]Accept
	claims   map[Attempt]Claim
}

// lentConn is a connection, with what its gateway knows.
type lentConn struct {
	addr    string
	open    bool
	credits int    // the gateway's, which is below zero while frames cross
	number  uint32 // of its last call
	calls   map[uint32]bool
	// toAgent and toGateway are under way.
	toAgent   []Event
	toGateway []Effect
	// agent is what the agent has lent, counted from its frames.
	agent int
}

func TestBothSidesAgreeOnCreditsWhenNothingIsUnderWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &lentPlaces{
			t: t, now: time.Unix(1_000_000, 0), conns: map[Conn]*lentConn{}, runs: map[Attempt]Accept{}, claims: map[Attempt]Claim{},
			p: Params{Concurrency: rapid.IntRange(1, 4).Draw(t, "concurrency"), BackoffAfter: 3 * time.Second, IdleTimeout: time.Hour, Jitter: 1},
		}
		w.core = New(w.p)
		w.core.conns.renewAfter = rapid.IntRange(1, 30).Draw(t, "renew after")
		w.play(Begin{})
		w.answer()
		w.play(FunctionReady{})
		if rapid.Bool().Draw(t, "warm") {
			w.warmUp()
		}
		t.Repeat(map[string]func(*rapid.T){
			"ticket": func(*rapid.T) { w.ticket() },
			"grant":  func(*rapid.T) { w.grant() },
			"call":   func(*rapid.T) { w.call() },
			"call ":  func(*rapid.T) { w.call() },
			"end":    func(*rapid.T) { w.end() },
			"end ":   func(*rapid.T) { w.end() },
			"return": func(*rapid.T) { w.giveBack() },
			"recall": func(*rapid.T) {
				w.play(Received{w.session, Recall{
					w.addr(), rapid.IntRange(-1, 5).Draw(t, "calls"), time.Duration(rapid.IntRange(-1, 100).Draw(t, "term")) * time.Millisecond,
				}})
			},
			"hear":   func(*rapid.T) { w.deliverToAgent() },
			"hear ":  func(*rapid.T) { w.deliverToAgent() },
			"say":    func(*rapid.T) { w.deliverToGateway() },
			"say ":   func(*rapid.T) { w.deliverToGateway() },
			"lose":   func(*rapid.T) { w.lose() },
			"vanish": func(*rapid.T) { w.vanish() },
			"answer": func(*rapid.T) { w.answer() },
			"open":   func(*rapid.T) { w.openOne() },
			"pass":   func(*rapid.T) { w.pass(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond) },
			"stop":   func(*rapid.T) { w.stopSeldom() },
			"settle": func(*rapid.T) { w.settle() },
			"":       func(*rapid.T) { w.check() },
		})
		w.settle()
	})
}

func (w *lentPlaces) play(e Event) {
	for _, effect := range w.core.Step(w.now, e) {
		w.see(effect)
	}
}

func (w *lentPlaces) see(e Effect) {
	switch e := e.(type) {
	case WakeAt:
		w.wake = e.Time
	case Dial:
		w.dialled = e.Session
	case Drop:
		w.dialled = 0
	case Send:
		if p, ok := e.Message.(Pull); ok {
			w.pulled += p.Credits
			w.loans = p.Loans
		}
	case Draining:
		w.draining = true
	case Connect:
		w.conns[e.Conn] = &lentConn{addr: e.Addr, calls: map[uint32]bool{}}
	case Disconnect:
		g := w.conns[e.Conn]
		if g.agent != 0 {
			w.t.Errorf("closed a connection with %d credits", g.agent)
		}
		if slices.ContainsFunc(w.running, func(n Attempt) bool { return w.runs[n].Conn == e.Conn }) {
			w.t.Error("closed a connection whose call runs")
		}
		g.open = false
	case Claim:
		w.claims[e.Attempt] = e
	case Release:
		delete(w.claims, e.Attempt)
		w.held--
	case Accept:
		if w.draining {
			w.t.Error("a draining instance accepted a call by a loan")
		}
		w.conns[e.Conn].agent--
		w.held++
		w.runs[e.Attempt] = e
	case Start:
		w.start(e)
	case Deliver:
		w.deliver(e)
	case Decline:
		w.send(e.Conn, e, 0)
	case Lend:
		change := e.Credits
		if e == w.returned { // what the agent has lent is as before
			change, w.returned = 0, Lend{}
		}
		w.send(e.Conn, e, change)
	case TakeBack:
		if e.Credits < 1 || e.Credits > w.conns[e.Conn].agent {
			w.t.Errorf("takes back %d of %d credits", e.Credits, w.conns[e.Conn].agent)
		}
		w.send(e.Conn, e, -e.Credits)
	}
}

// send puts a frame on its way to a gateway; change is that of the agent's credits.
func (w *lentPlaces) send(n Conn, frame Effect, change int) {
	if g := w.conns[n]; g != nil {
		g.agent += change
		g.toGateway = append(g.toGateway, frame)
	}
}

func (w *lentPlaces) start(e Start) {
	if w.running = append(w.running, e.Attempt); len(w.running) > w.p.Concurrency {
		w.t.Errorf("%d calls run", len(w.running))
	}
	if claim, byTicket := w.claims[e.Attempt]; byTicket { // the claim has held the place
		w.runs[e.Attempt] = Accept{Conn: claim.Conn}
		delete(w.claims, e.Attempt)
	}
}

func (w *lentPlaces) deliver(e Deliver) {
	w.held--
	conn := w.runs[e.Attempt].Conn
	w.running = slices.DeleteFunc(w.running, func(n Attempt) bool { return n == e.Attempt })
	if e.Keeps && w.draining {
		w.t.Error("a draining instance keeps a place")
	}
	if w.conns[conn] == nil {
		if e.Keeps {
			w.t.Error("a place is kept for a connection that is lost")
		}
		return
	}
	change := 0
	if e.Keeps {
		change = 1
	}
	w.send(conn, e, change)
}

func (w *lentPlaces) addr() string {
	return rapid.SampledFrom([]string{"g:1", "g:2"}).Draw(w.t, "address")
}

// warmUp lets both gateways have called the instance, so that either may have places of it.
func (w *lentPlaces) warmUp() {
	for _, addr := range []string{"g:1", "g:2"} {
		t := ticket('a')
		t.Ticket.Gateway, t.Lent = addr, true
		w.pulled--
		w.held++
		w.play(Received{w.session, t})
		w.openOne()
		for n := range w.claims {
			w.play(Granted{n})
		}
		w.play(CallEnded{Attempt: w.running[0], Outcome: Complete})
		w.settle()
		w.play(Received{w.session, Recall{addr, w.p.Concurrency, 0}})
		w.settle()
	}
}

// vanish lets the scheduler be gone, with what was pulled, and answer lets one answer.
func (w *lentPlaces) vanish() {
	if w.session == 0 || w.draining || rapid.IntRange(0, 3).Draw(w.t, "vanishes") > 0 {
		return
	}
	gone := w.session
	w.session, w.dialled, w.pulled = 0, 0, 0
	w.play(Lost{Session: gone, Cause: CauseClosed})
}

func (w *lentPlaces) answer() {
	if w.session != 0 || w.dialled == 0 {
		return
	}
	w.session = w.dialled
	w.play(Opened{w.session})
	w.play(Received{w.session, Welcome{1}})
}

func (w *lentPlaces) ticket() {
	if w.pulled == 0 || w.draining {
		return
	}
	t := ticket('a')
	t.Ticket.Gateway, t.Lent = w.addr(), rapid.IntRange(0, 3).Draw(w.t, "lent") > 0
	w.pulled--
	w.held++
	w.play(Received{w.session, t})
}

func (w *lentPlaces) grant() {
	claims := sorted(w.claims)
	if len(claims) == 0 {
		return
	}
	n := claims[0]
	if rapid.IntRange(0, 9).Draw(w.t, "granted") > 0 {
		w.play(Granted{n})
		return
	}
	delete(w.claims, n)
	w.held--
	w.play(Refused{n})
}

// pick is one of the open connections.
func (w *lentPlaces) pick() (Conn, *lentConn) {
	var open []Conn
	for _, n := range sorted(w.conns) {
		if w.conns[n].open {
			open = append(open, n)
		}
	}
	if len(open) == 0 {
		return 0, nil
	}
	n := rapid.SampledFrom(open).Draw(w.t, "gateway")
	return n, w.conns[n]
}

func (w *lentPlaces) call() {
	n, g := w.pick()
	if g == nil || g.credits <= 0 {
		return
	}
	g.credits--
	g.number += 2
	g.calls[g.number] = true
	g.toAgent = append(g.toAgent, Called{Conn: n, Call: g.number})
}

func (w *lentPlaces) giveBack() {
	n, g := w.pick()
	if g == nil || g.credits <= 0 {
		return
	}
	k := rapid.IntRange(1, g.credits).Draw(w.t, "returned")
	g.credits -= k
	g.toAgent = append(g.toAgent, Returned{n, k})
}

func (w *lentPlaces) end() {
	if len(w.running) > 0 {
		w.play(CallEnded{Attempt: rapid.SampledFrom(w.running).Draw(w.t, "call"), Outcome: Complete})
	}
}

func (w *lentPlaces) deliverToAgent() {
	if _, g := w.pick(); g != nil {
		w.hear(g)
	}
}

func (w *lentPlaces) hear(g *lentConn) {
	if len(g.toAgent) == 0 {
		return
	}
	e := g.toAgent[0]
	g.toAgent = g.toAgent[1:]
	if r, ok := e.(Returned); ok {
		back := min(g.agent, r.Credits)
		g.agent -= back
		w.returned = Lend{r.Conn, r.Credits - back}
	}
	w.play(e)
}

func (w *lentPlaces) deliverToGateway() {
	if _, g := w.pick(); g != nil {
		w.say(g)
	}
}

// say is what a gateway does about a frame.
func (w *lentPlaces) say(g *lentConn) {
	if len(g.toGateway) == 0 {
		return
	}
	frame := g.toGateway[0]
	g.toGateway = g.toGateway[1:]
	switch f := frame.(type) {
	case Deliver:
		if run := w.runs[f.Attempt]; run.Call != 0 && !g.calls[run.Call] {
			w.t.Errorf("call %d was answered twice", run.Call)
		} else {
			delete(g.calls, run.Call)
		}
		if f.Keeps {
			g.credits++
		}
	case Decline:
		if !g.calls[f.Call] {
			w.t.Errorf("call %d was declined after its answer", f.Call)
		}
		delete(g.calls, f.Call)
		g.credits++
	case Lend:
		g.credits += f.Credits
	case TakeBack:
		g.credits -= f.Credits
	}
}

func (w *lentPlaces) lose() {
	if rapid.IntRange(0, 5).Draw(w.t, "lost") > 0 {
		return
	}
	for _, n := range sorted(w.conns) {
		w.loseOne(n)
		return
	}
}

func (w *lentPlaces) loseOne(n Conn) {
	delete(w.conns, n)
	for _, a := range sorted(w.claims) {
		if w.claims[a].Conn == n {
			delete(w.claims, a)
		}
	}
	w.held -= w.waitingOrClaimed(n)
	w.play(ConnLost{n})
}

// waitingOrClaimed is how many claims end with a connection.
func (w *lentPlaces) waitingOrClaimed(n Conn) int {
	claims := 0
	for _, a := range w.core.calls.at(n) {
		if w.core.calls.inPhase(claiming, a) != nil {
			claims++
		}
	}
	return claims
}

func (w *lentPlaces) openOne() {
	for _, n := range sorted(w.conns) {
		if g := w.conns[n]; !g.open && w.core.conns.all[n].phase == connDialing {
			g.open = true
			w.play(ConnOpened{n})
		}
	}
}

// pass lets time pass. Claims may time out in it, sent or not.
func (w *lentPlaces) pass(d time.Duration) {
	until := w.now.Add(d)
	w.play(Received{w.session, Pong{}})
	for !w.wake.IsZero() && !w.wake.After(until) {
		w.now, w.wake = w.wake, time.Time{}
		unsent := w.unsent()
		w.play(Wake{})
		w.held -= unsent - w.unsent()
		w.play(Received{w.session, Pong{}})
	}
	w.now = until
}

// unsent counts claims that wait for a connection.
func (w *lentPlaces) unsent() int {
	n := 0
	for _, a := range w.core.calls.attempts {
		if a.phase == claiming && !a.sent {
			n++
		}
	}
	return n
}

func (w *lentPlaces) stopSeldom() {
	if rapid.IntRange(0, 30).Draw(w.t, "stop") == 0 {
		w.play(Stop{"enough"})
	}
}

func (w *lentPlaces) check() {
	lentTo, all, most := map[string]int{}, 0, 0
	for n, g := range w.conns {
		all, most = all+g.agent, max(most, g.agent)
		if c := w.core.conns.all[n]; g.agent < 0 || c != nil && c.idle != g.agent {
			w.t.Errorf("the agent has lent %d credits, by its frames %d", c.idle, g.agent)
		}
		if g.open {
			lentTo[g.addr] += w.core.conns.all[n].lent()
		}
	}
	if known := w.held + all + w.pulled; !w.draining && w.session != 0 && known != w.p.Concurrency {
		w.t.Errorf("%d held, %d lent and %d pulled of %d", w.held, all, w.pulled, w.p.Concurrency)
	}
	if w.held+most > w.p.Concurrency { // gateways share places while no scheduler answers
		w.t.Errorf("%d held, and %d lent to one gateway of %d", w.held, most, w.p.Concurrency)
	}
	if w.draining {
		if all > 0 {
			w.t.Errorf("%d places are lent while it drains", all)
		}
		return
	}
	if w.session == 0 {
		return // nobody was told of the last changes
	}
	for _, l := range w.loans {
		if lentTo[l.Gateway] != l.Calls || l.Calls < 1 {
			w.t.Errorf("the scheduler knows of %d loans of %s, and there are %d", l.Calls, l.Gateway, lentTo[l.Gateway])
		}
		delete(lentTo, l.Gateway)
	}
	for addr, n := range lentTo {
		if n > 0 {
			w.t.Errorf("the scheduler does not know of %d loans of %s", n, addr)
		}
	}
}

// settle delivers all frames and compares the two sides.
func (w *lentPlaces) settle() {
	for busy := true; busy; {
		busy = false
		for _, n := range sorted(w.conns) {
			if g := w.conns[n]; g.open && len(g.toAgent)+len(g.toGateway) > 0 {
				busy = true
				w.hear(g)
				w.say(g)
			}
		}
	}
	w.check()
	for n, g := range w.conns {
		if g.open && g.credits != g.agent {
			w.t.Errorf("the gateway of %d has %d credits, and the agent has lent %d", n, g.credits, g.agent)
		}
	}
}

func sorted[K ~uint64, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// A warm function goes on without any scheduler for as long as gateways call it.
func TestAnInstanceThatIsCalledDoesNotGiveUpLookingForAScheduler(t *testing.T) {
	p := params()
	p.BackoffAfter, p.IdleTimeout = time.Hour, time.Second
	s := ready(t, p)
	s.on(Received{1, lent('a')}, Granted{1}, CallEnded{Attempt: 1, Outcome: Complete}, Lost{Session: 1})
	wait := p.BackoffAfter + p.IdleTimeout
	begun := s.now
	for n := Attempt(2); s.now.Sub(begun) < 5*wait; n++ {
		s.on(Called{Conn: 1, Call: uint32(n)})
		s.pass(3 * wait) // longer than it looks for a scheduler without calls
		s.on(CallEnded{Attempt: n, Outcome: Complete})
		s.pass(p.BackoffAfter - time.Second)
	}
	if s.core.life.draining {
		t.Fatal("it gave up although it was called")
	}
	last := s.now.Add(-p.BackoffAfter + time.Second)
	for !s.core.life.over && s.now.Sub(last) < time.Hour+time.Minute {
		s.pass(time.Second)
	}
	if took := s.now.Sub(last); !s.core.life.over || took < wait || took > wait+2*maxPause {
		t.Errorf("it gave up %v after its last call, want %v", took, wait)
	}
}

func TestConnectionsBeyondTheLimitReplaceTheOneUnusedForLongest(t *testing.T) {
	p := params()
	p.Concurrency = maxConns + 2
	s := ready(t, p)
	at := func(addr string, t Ticket) Ticket { t.Ticket.Gateway = addr; return t }
	s.on(Received{1, at("busy", ticket('a'))}, Granted{1})
	s.on(Received{1, at("lender", lent('b'))}, Granted{2}, CallEnded{Attempt: 2, Outcome: Complete})
	for i := range maxConns - 2 {
		s.pass(100 * time.Millisecond)
		s.on(Received{1, Pong{}}, Received{1, at("unused"+string(rune('A'+i)), ticket('c'))}, Refused{Attempt(3 + i)})
	}
	s.done, s.byHand = nil, true
	s.on(Received{1, at("new", ticket('d'))})
	s.expect("disconnect 3", "connect 65 new")
}
