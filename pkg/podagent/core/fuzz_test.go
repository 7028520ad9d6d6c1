package core

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FuzzStep plays any history, whose bytes say what happens next, and compares what
// the agent does with what doc.go promises.
func FuzzStep(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x00\x10\x20\x30\x40\x50\x60\x70\x80\x90\xa0\xb0\xc0\xd0\xe0\xf0"))
	f.Fuzz(func(t *testing.T, history []byte) { playHistory(t, history) })
}

func TestPromisesHoldInManyHistories(t *testing.T) {
	sum := historyCounters{}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 2))
		history := make([]byte, r.IntN(1200))
		for i := range history {
			history[i] = byte(r.Uint32())
		}
		sum.add(playHistory(t, history))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if sum.starts < 5000 || sum.sessions < 5000 || sum.released < 100 || sum.byLoan < 1000 || sum.declined < 500 || sum.lost < 1000 || sum.silent < 100 || sum.assigned < 100 || sum.mended < 100 || sum.asked < 1000 || sum.gaveUpCore < 100 || sum.withoutCore < 50 || sum.givenUp < 50 || sum.shared < 100 {
		t.Errorf("chance has left out too much: %+v", sum)
	}
}

// historyCounters counts what happened, so that a test can see that it did.
type historyCounters struct{ starts, sessions, released, byLoan, declined, lost, silent, assigned, mended, asked, gaveUpCore, withoutCore, givenUp, shared int }

func (s *historyCounters) add(o historyCounters) {
	s.starts += o.starts
	s.sessions += o.sessions
	s.released += o.released
	s.byLoan += o.byLoan
	s.declined += o.declined
	s.lost += o.lost
	s.silent += o.silent
	s.assigned += o.assigned
	s.mended += o.mended
	s.asked += o.asked
	s.gaveUpCore += o.gaveUpCore
	s.withoutCore += o.withoutCore
	s.givenUp += o.givenUp
	s.shared += o.shared
}

// checker knows what was done and what happened, in the plainest way.
type checker struct {
	t        *testing.T
	core     *Core
	p        Params
	now      time.Time
	wake     time.Time
	counters historyCounters

	dialled, open map[Session]bool
	credits       int // asked for on the stream that is open, less tickets
	ready, gaveUp bool
	spare         bool // of no function so far
	drained, over bool
	state         map[Attempt]string // claimed, granted, accepted, started, free
	attempts      []Attempt
	missing       Attempt // that the last audit did not see
	dials         []time.Time

	conns    []Conn       // the latest last
	idle     map[Conn]int // credits, of those that are open
	returned Lend         // credits that a gateway has given back twice
	at       map[Attempt]Conn
	lent     map[Attempt]bool
	opening  bool   // the latest connection opens at once
	calling  uint32 // the number of the Called that is being played

	nodeUp, known bool      // the node agent is there, and knows of the call
	asking        Attempt   // waits for a core
	coreRan       bool      // the call that the node agent knows of has begun
	waitsLong     Attempt   // waits for a core, as its gateway has heard
	sign          time.Time // of the node agent, or the ask
}

func playHistory(t *testing.T, history []byte) historyCounters {
	w := &checker{
		t: t, now: time.Unix(1_000_000, 0),
		p:       Params{Concurrency: 3, BackoffAfter: 3 * time.Second, IdleTimeout: 10 * time.Second, Jitter: 1},
		dialled: map[Session]bool{}, open: map[Session]bool{}, state: map[Attempt]string{},
		idle: map[Conn]int{}, at: map[Attempt]Conn{}, lent: map[Attempt]bool{},
	}
	if len(history) > 0 && history[0]%2 == 0 {
		w.p.Owner = "o:0"
	}
	if len(history) > 0 && history[0]%8 == 0 {
		w.spare = true
	}
	if len(history) > 0 && history[0]%3 == 1 {
		w.p.Concurrency = 1
	}
	w.core = New(w.params())
	w.play(Begin{})
	for len(history) > 1 && !w.over {
		w.playOne(history[0], int(history[1]))
		history = history[2:]
	}
	w.settle()
	return w.counters
}

// params are those of a core that knows what it may know.
func (w *checker) params() Params {
	if w.spare {
		return Params{Spare: true, Owner: w.p.Owner, Jitter: w.p.Jitter}
	}
	return w.p
}

// playOne plays one of all things that can happen; some make no sense.
func (w *checker) playOne(what byte, how int) {
	session := w.core.link.session
	if how%16 == 0 {
		session-- // one that is over
	}
	attempt := w.pick(how)
	switch what % 42 {
	case 0:
		w.play(FunctionReady{})
	case 1, 2, 3:
		if w.dialled[session] {
			w.play(Opened{session})
			w.play(Received{session, Welcome{uint64(how % 5)}})
		}
	case 4:
		w.play(Lost{Session: session, Cause: CauseBroken})
	case 5:
		w.play(Received{session, Moved{[]string{"", "o:1", "o:2", "o:3"}[how%4], uint64(how / 4 % 8)}})
	case 6, 7, 8, 9:
		w.ticket(session, how)
	case 10, 11:
		w.play(Granted{attempt})
	case 12:
		w.play(Refused{attempt})
	case 13:
		if how%8 == 0 {
			w.play(ConnLost{w.pickConn(how / 8)})
		}
	case 14:
		w.play([]Event{Cancelled{attempt}, BodyCut{attempt}}[how%2])
	case 15, 16, 17:
		outcome := Complete
		if how%40 == 0 {
			outcome = Outcome(how / 40 % 3)
		}
		w.play(CallEnded{Attempt: attempt, Outcome: outcome})
	case 18:
		w.play(ConnOpened{w.pickConn(how)})
	case 19, 20:
		w.pass(time.Duration(how*how) * 30 * time.Microsecond)
	case 21:
		w.play(Received{session, Pong{}})
	case 22:
		w.play(Received{session, LeaveAnswer{Granted: how%20 == 0, AskAgain: time.Duration(how) * time.Millisecond}})
	case 23:
		w.seldom(session, how)
	case 24:
		w.play(RuntimeReady{})
		w.play(Received{session, Assignment{time.Minute, w.p.Concurrency, w.p.BackoffAfter, w.p.IdleTimeout}})
	case 25:
		w.audit(how)
		if how%3 == 0 {
			w.audit(how)
		}
	case 26, 27, 30, 31:
		w.calling += 2
		w.play(Called{Conn: w.pickConn(how), Call: w.calling, ID: invocation.ID{byte(how)}})
	case 28:
		w.play(Returned{w.pickConn(how), how % 3})
	case 32, 33:
		w.play(Granted{attempt})
	case 34, 35:
		w.playNode(NodeMode{Busy: how%8 > 0, Ask: how%8 > 1})
	case 40, 41:
		if how%2 == 0 && w.asking != 0 {
			w.pass(invocation.LongCoreWait)
			attempt = w.asking
		}
		w.play(GiveUp{attempt})
	case 36, 37:
		w.playNode(NodeGranted{attempt})
	case 38:
		w.playNode([]Event{NodeStill{}, NodeWelcome{time.Duration(how) * 10 * time.Millisecond}}[how%2])
	case 39:
		w.playNode([]Event{NodeLost{}, NodeLow{how%16 > 8}}[min(1, how%8)])
	case 29:
		if how%2 == 0 {
			return
		}
		w.play(Received{session, Recall{gatewayAddr(how), how/4%6 - 1, time.Duration(how/24%3) * 50 * time.Millisecond}})
	}
}

// playNode plays an event of the node agent, whose first one says its mode.
func (w *checker) playNode(e Event) {
	switch e.(type) {
	case NodeMode, NodeWelcome:
		w.nodeUp = true
	case NodeLost:
		w.nodeUp, w.known, w.asking = false, false, 0
	default:
		if !w.nodeUp {
			return
		}
	}
	w.sign = w.now
	w.play(e)
}

func gatewayAddr(how int) string { return []string{"g:1", "g:2"}[how%2] }

// pickConn is one of the latest connections.
func (w *checker) pickConn(how int) Conn {
	recent := w.conns[max(0, len(w.conns)-4):]
	if len(recent) == 0 {
		return 0
	}
	return recent[how%len(recent)]
}

// audit plays one that misses nothing, or a call, or the session.
func (w *checker) audit(how int) {
	if w.over {
		return
	}
	seen := Audit{Session: w.core.link.session}
	for n, g := range w.core.conns.all {
		if g.phase != connPausing {
			seen.Conns = append(seen.Conns, n)
		}
	}
	if how%16 == 1 {
		seen.Session = 0
	}
	missing := Attempt(0)
	if how%4 == 2 && w.core.calls.inPhase(awaitingCore, w.pick(how/4)) == nil {
		missing = w.pick(how / 4)
	}
	for n, a := range w.core.calls.attempts {
		if n != missing && (a.sent || a.phase == running) {
			seen.Calls = append(seen.Calls, n)
		}
	}
	if _, sent := w.at[missing]; !sent || w.core.calls.attempts[missing] == nil {
		missing = 0
	}
	if missing != 0 && missing == w.missing {
		w.counters.mended++
		w.move(missing, "claimed", "free")
		w.move(missing, "started", "free")
		missing = 0
	}
	w.missing = missing
	if absent := w.core.audits.absent; absent != 0 && seen.Session == 0 {
		delete(w.dialled, absent)
		delete(w.open, absent)
	}
	w.play(seen)
}

// seldom plays what ends an agent.
func (w *checker) seldom(session Session, how int) {
	switch how {
	case 1, 2:
		w.play(Stop{})
	case 3:
		w.play(Received{session, Drain{}})
	case 4:
		w.play(FunctionFailed{})
	case 5:
		w.play(Lost{Session: session, Cause: CauseUnknown})
	case 6:
		w.play(Lost{Session: session, Cause: CauseClosed})
	}
}

func (w *checker) ticket(session Session, how int) {
	taken := w.ready && !w.gaveUp && w.open[session] && w.held()+w.lentIdle() < w.p.Concurrency
	before := w.core.calls.last
	if taken {
		w.credits--
		w.state[before+1], w.lent[before+1] = "claimed", how%3 > 0
		w.attempts = append(w.attempts, before+1)
	}
	w.play(Received{session, Ticket{invocation.Ticket{ID: invocation.ID{byte(how)}, Gateway: gatewayAddr(how / 3)}, how%3 > 0}})
	if got := w.core.calls.last > before; got != taken {
		w.t.Errorf("ticket taken: %v, want %v", got, taken)
	}
}

func (w *checker) pick(how int) Attempt {
	if len(w.attempts) == 0 {
		return 0
	}
	recent := w.attempts[max(0, len(w.attempts)-2*w.p.Concurrency):]
	return recent[how%len(recent)]
}

func (w *checker) held() int {
	n := 0
	for _, s := range w.state {
		if s != "free" {
			n++
		}
	}
	return n
}

// lentIdle is how many credits the gateways have.
func (w *checker) lentIdle() int {
	n := 0
	for _, credits := range w.idle {
		n += credits
	}
	return n
}

// pass lets time pass.
func (w *checker) pass(d time.Duration) {
	until := w.now.Add(d)
	for !w.over && !w.wake.IsZero() && !w.wake.After(until) {
		if w.wake.Before(w.now) {
			w.t.Error("a wake in the past")
		}
		w.now, w.wake = w.wake, time.Time{}
		w.play(Wake{})
		if w.wake.Equal(w.now) {
			w.t.Fatal("it spins")
		}
	}
	w.now = until
}

// play plays an event, and checks what was promised.
func (w *checker) play(e Event) {
	if w.over {
		return
	}
	w.before(e)
	for _, effect := range w.core.Step(w.now, e) {
		if w.over {
			w.t.Errorf("%T after the end", effect)
		}
		w.see(effect)
	}
	w.freeUnsent()
	if w.opening {
		w.opening = false
		w.play(ConnOpened{w.conns[len(w.conns)-1]})
	}
	w.checkNode()
	if held := w.held(); held > w.p.Concurrency || held != w.core.calls.held() {
		w.t.Errorf("%d calls are held, and %d counted, of %d", held, w.core.calls.held(), w.p.Concurrency)
	}
	for _, n := range w.core.conns.numbers() {
		if w.idle[n] > w.p.Concurrency-w.held() {
			w.t.Errorf("a gateway has %d credits beside %d calls, of %d", w.idle[n], w.held(), w.p.Concurrency)
		}
	}
	if w.ready && !w.gaveUp && len(w.open) > 0 && !w.core.conns.shared && w.credits != w.p.Concurrency-w.held()-w.lentIdle() {
		w.t.Errorf("%d credits, %d calls and %d lent, want %d in all (%T)", w.credits, w.held(), w.lentIdle(), w.p.Concurrency, e)
	}
}

// checkNode checks that no call waits for a node agent that is gone.
func (w *checker) checkNode() {
	n, a := w.core.waitingForCore()
	switch {
	case a == nil && w.asking != 0 && !w.over:
		w.counters.withoutCore++
		w.asking = 0
	case a != nil && (!w.nodeUp || n != w.asking || !w.now.Before(w.sign.Add(w.core.node.patience()))):
		w.t.Errorf("%d waits for a core, since %v after the last sign; the node agent is there: %v", n, w.now.Sub(w.sign), w.nodeUp)
	}
}

// freeUnsent frees the claims that timed out before they were sent.
func (w *checker) freeUnsent() {
	for n, s := range w.state {
		if _, sent := w.at[n]; s == "claimed" && !sent && w.core.calls.attempts[n] == nil {
			w.state[n] = "free"
		}
	}
}

// before takes note of what an event says.
func (w *checker) before(e Event) {
	switch e := e.(type) {
	case FunctionReady:
		w.ready = w.ready || !w.gaveUp && !w.spare
	case Opened:
		if w.dialled[e.Session] {
			delete(w.dialled, e.Session)
			w.open[e.Session] = true
			w.credits = 0
		}
	case Lost:
		delete(w.dialled, e.Session)
		delete(w.open, e.Session)
	case Granted:
		if w.at[e.Attempt] != 0 { // otherwise it was not sent yet
			w.move(e.Attempt, "claimed", "granted")
		}
	case Refused:
		if w.at[e.Attempt] != 0 {
			w.move(e.Attempt, "claimed", "free")
		}
	case ConnLost:
		w.connLost(e.Conn)
	case Returned:
		back := min(e.Credits, w.idle[e.Conn])
		w.idle[e.Conn] -= back
		w.returned = Lend{e.Conn, e.Credits - back}
	case CallEnded:
		w.move(e.Attempt, "started", "free")
	case GiveUp:
		if w.waitsLong != 0 && e.Attempt == w.waitsLong {
			w.counters.givenUp++
		}
	case NodeGranted:
		if e.Attempt == w.asking {
			w.asking = 0
		}
	}
}

func (w *checker) connLost(n Conn) {
	if w.core.conns.all[n] == nil || w.core.conns.all[n].phase == connPausing {
		return
	}
	w.counters.lost++
	delete(w.idle, n)
	for a, g := range w.at {
		if g == n {
			w.move(a, "claimed", "free")
		}
	}
}

func (w *checker) move(n Attempt, from, to string) {
	if w.state[n] == from {
		w.state[n] = to
	}
}

// see checks one effect.
func (w *checker) see(e Effect) {
	switch e := e.(type) {
	case Dial:
		if len(w.dialled)+len(w.open) > 0 {
			w.t.Error("two sessions at a time")
		}
		if w.spare && e.Addr != w.p.Owner {
			w.t.Errorf("a spare instance turns to %q", e.Addr)
		}
		w.dialled[e.Session] = true
		w.countDial()
	case Drop:
		if w.open[e.Session] {
			w.counters.silent++
		}
		delete(w.dialled, e.Session)
		delete(w.open, e.Session)
	case Send:
		if !w.open[e.Session] {
			w.t.Errorf("%#v without a stream", e.Message)
		}
		w.hear(e.Message)
	case HangUp:
		w.freeUnsent()
		if !w.open[e.Session] || w.held() > 0 {
			w.t.Error("hung up what is not open, or during a call")
		}
	case WakeAt:
		w.wake = e.Time
	case LoadFunction:
		if !w.spare || w.gaveUp {
			w.t.Error("became a function's twice, or while it left")
		}
		w.spare = false
		w.counters.assigned++
	case Draining:
		w.gaveUp = true
	case Drained:
		w.freeUnsent()
		if w.drained || !w.gaveUp || w.held() > 0 {
			w.t.Error("drained twice, or too early")
		}
		w.drained = true
	case End:
		if !w.drained || len(w.dialled)+len(w.open) > 0 {
			w.t.Error("ended with a call or a session")
		}
		w.over = true
	default:
		w.seeCall(e)
	}
}

// hear checks what is said to a scheduler.
func (w *checker) hear(m Message) {
	switch m := m.(type) {
	case Hello:
		if m.Spare != w.spare {
			w.t.Errorf("says spare %v, and is %v", m.Spare, w.spare)
		}
	case Pull:
		if w.spare {
			w.t.Error("a spare instance asks for calls")
		}
		w.credits += m.Credits
	}
}

func (w *checker) seeCall(e Effect) {
	switch e := e.(type) {
	case Connect:
		w.conns = append(w.conns, e.Conn)
		w.opening = e.Conn%4 > 0
	case Claim:
		if w.gaveUp && w.state[e.Attempt] != "claimed" {
			w.t.Error("claimed after the instance was given up")
		}
		w.at[e.Attempt] = e.Conn
	case Accept:
		w.seeAccept(e)
	case Start:
		w.counters.starts++
		if s := w.state[e.Attempt]; s != "granted" && s != "accepted" || w.asking == e.Attempt && w.now.Before(w.sign.Add(w.core.node.patience())) {
			w.t.Errorf("started an attempt that is %q; %d asks for a core", s, w.asking)
		}
		if w.waitsLong == e.Attempt {
			w.t.Error("started a call that its gateway may give to another instance")
		}
		w.state[e.Attempt], w.coreRan = "started", true
	case AskCore, GiveUpCore, ReportRunning, EndCore:
		w.seeCore(e)
	case Deliver:
		w.move(e.Attempt, "accepted", "free")
		if w.waitsLong == e.Attempt {
			w.waitsLong = 0
		}
		if e.Keeps && (w.gaveUp || !w.lent[e.Attempt] || w.core.conns.open(w.at[e.Attempt]) == nil) {
			w.t.Error("kept a place for a gateway that must not have it")
		}
		if e.Keeps {
			w.idle[w.at[e.Attempt]]++
		}
	case TellWait:
		if before := w.waitsLong; e.Waits && (before != 0 || w.state[e.Attempt] != "accepted") || !e.Waits && before != e.Attempt {
			w.t.Errorf("%+v after call %d had waited", e, before)
		}
		if w.waitsLong = 0; e.Waits {
			w.waitsLong = e.Attempt
		}
	case TakeBack:
		if w.idle[e.Conn] -= e.Credits; e.Credits < 1 || w.idle[e.Conn] < 0 {
			w.t.Errorf("took back %d credits", e.Credits)
		}
	case Lend:
		if e == w.returned { // it was given back twice
			w.returned = Lend{}
			break
		}
		w.freeUnsent()
		w.counters.shared++
		if w.idle[e.Conn] += e.Credits; e.Credits < 1 || w.gaveUp || w.core.link.established() || w.core.conns.open(e.Conn) == nil || w.held()+w.idle[e.Conn] > w.p.Concurrency {
			w.t.Errorf("lent %d credits without a call", e.Credits)
		}
	case Decline:
		w.counters.declined++
		if w.idle[e.Conn] > 0 || e.Call != w.calling {
			w.t.Error("declined a call that has a credit")
		}
	case Release:
		w.counters.released++
		if s := w.state[e.Attempt]; s != "claimed" && s != "granted" {
			w.t.Errorf("released an attempt that is %q", s)
		}
		w.state[e.Attempt] = "free"
	case Cancel:
		if w.state[e.Attempt] != "started" {
			w.t.Error("cancelled what does not run")
		}
	case Cut:
		if w.state[e.Attempt] != "started" {
			w.t.Error("cut what does not run")
		}
	case Quiet:
		if w.held() > 0 {
			w.t.Error("quiet during a call")
		}
	}
}

func (w *checker) seeAccept(e Accept) {
	if w.gaveUp || w.state[e.Attempt] != "" || w.idle[e.Conn] < 1 || e.Call != w.calling {
		w.t.Error("accepted a call in a place that is not lent to its gateway")
	}
	w.counters.byLoan++
	w.idle[e.Conn]--
	w.at[e.Attempt], w.lent[e.Attempt] = e.Conn, true
	w.attempts = append(w.attempts, e.Attempt)
	w.state[e.Attempt] = "accepted"
}

// seeCore checks what is said to the node agent.
func (w *checker) seeCore(e Effect) {
	if !w.nodeUp || w.p.Concurrency > 1 {
		w.t.Errorf("%T without a node agent, or of a function that has several calls at a time", e)
	}
	switch e := e.(type) {
	case AskCore:
		w.counters.asked++
		if w.known || w.gaveUp {
			w.t.Error("asked for a core while another call has one, or the instance leaves")
		}
		w.known, w.coreRan = true, false
		if !w.core.node.silent {
			w.asking, w.sign = e.Attempt, w.now
		}
	case GiveUpCore:
		w.counters.gaveUpCore++
		if w.asking != e.Attempt {
			w.t.Error("gave up a call that does not wait")
		}
		w.known, w.asking = false, 0
	case ReportRunning:
		if w.known || w.state[e.Attempt] != "started" {
			w.t.Error("reported a call that the node agent knows, or that does not run")
		}
		w.known, w.coreRan = true, true
	case EndCore:
		if !w.known {
			w.t.Error("ended a call that the node agent does not know")
		}
		if e.Refused != !w.coreRan {
			w.t.Errorf("refused is %v for a call that ran: %v", e.Refused, w.coreRan)
		}
		w.known, w.asking = false, 0
	}
}

// countDial checks that schedulers are not tried in a frenzy: at most three with each
// of the pauses that make up a second.
func (w *checker) countDial() {
	w.counters.sessions++
	w.dials = append(w.dials, w.now)
	const most = 30
	if n := len(w.dials); n > most && w.now.Sub(w.dials[n-most-1]) < time.Second {
		w.t.Errorf("dialled %d times within %v", most, w.now.Sub(w.dials[n-most-1]))
	}
}

// settle ends everything in good order, which must lead to the end.
func (w *checker) settle() {
	w.play(Stop{})
	for _, n := range w.attempts {
		w.play(Refused{n})
		w.play(CallEnded{Attempt: n, Outcome: Complete})
	}
	w.pass(settleFor)
	for _, n := range w.conns {
		w.play(ConnLost{n})
	}
	w.pass(goodbyeTimeout + time.Second)
	if !w.over {
		w.t.Error("it does not end")
	}
}
