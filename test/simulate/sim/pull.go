package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
	"github.com/windlass-dev/windlass/pkg/queue"
	scheduling "github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// openPull is what an instance opens to a scheduler: it says who it is.
type openPull struct {
	fn  *unit
	cid invocation.CID
}

// pullEnd is a scheduler's end of an instance's pulls.
type pullEnd struct {
	scheduler *scheduler
	fn        *unit
	served    *served // nil before its hello
	cid       invocation.CID
	stream    *stream
	// accepted says that its hello was, joined that it is among the function's
	// instances, pulled that it has asked for work, and leaving that it goes.
	accepted, joined, pulled, leaving bool
	heard                             time.Time
	// joinedAt is when it joined, in the world's time.
	joinedAt time.Duration
	// maySleep is how long it may be silent; 0 until it has said how often it speaks.
	maySleep time.Duration
	// awaits is the ticket for which it has no core yet.
	awaits invocation.ID
	// out is what the instance was handed here and has not given back.
	out []handed
}

type handed struct {
	id    invocation.ID
	token invocation.Token
	at    time.Time
}

func (p *pullEnd) opened() {}

// hangUpRequest is the end of what an instance has to say.
type hangUpRequest struct{}

func (p *pullEnd) take(m any) {
	p.heard = p.scheduler.now()
	if _, hello := m.(core.Hello); hello {
		p.hello()
		return
	}
	if !p.accepted {
		return
	}
	switch m := m.(type) {
	case core.Pull:
		p.pull(m)
	case core.LeaveRequest:
		p.requestLeave(m)
	case core.Goodbye:
		p.goodbye(m)
	case core.Ping:
		p.ping(m.Every)
	case hangUpRequest:
		p.giveUp()
	}
}

func (p *pullEnd) say(r core.Reply) {
	p.stream.send(p.scheduler.node, r)
}

// hello lets the instance join, or sends it to where it belongs.
func (p *pullEnd) hello() {
	f := p.scheduler.lookup(p.fn)
	if p.served = f; f == nil {
		if p.scheduler.term(p.fn.function) == scheduling.Unserved {
			p.moved()
		} else {
			p.unknown()
		}
		return
	}
	f.reconsider()
	if !f.serving() {
		p.moved()
		return
	}
	if f.inventory.find(p.cid) == nil {
		f.adopt() // it may have been started just now
	}
	e := f.inventory.find(p.cid)
	if e == nil {
		p.unknown()
		return
	}
	p.say(core.Welcome{Epoch: f.core.Term().Epoch})
	// One that opens another stream has lost the one before, even if that is not known
	// here yet.
	if before := f.stream(p.cid); before != nil {
		before.giveUp()
	}
	p.join(e)
}

// unknown tells the instance that it should not exist.
func (p *pullEnd) unknown() {
	p.stream.send(p.scheduler.node, unknownInstance{})
	p.stream.close(p.scheduler.node)
}

func (p *pullEnd) join(e *entry) {
	f := p.served
	p.accepted, p.joined, e.heard = true, true, true
	p.joinedAt = f.scheduler.world.now
	f.pulls = append(f.pulls, p)
	effects := f.step(scheduling.Joined{
		CID: p.cid, Capacity: f.fn.concurrency, Draining: e.leaving,
	})
	if _, refused := scheduling.AnswerOf[scheduling.JoinRefused](effects); refused {
		p.forget()
		p.stream.close(p.scheduler.node)
	}
}

// giveUp ends the stream.
func (p *pullEnd) giveUp() {
	p.end()
	p.stream.close(p.scheduler.node)
}

// retire tells the instance to go.
func (p *pullEnd) retire(reason string) { p.say(core.Drain{Detail: reason}) }

// moved names the owner and ends the stream.
func (p *pullEnd) moved() {
	p.forget()
	owner := p.scheduler.elsewhere(p.fn.function)
	p.say(core.Moved{Addr: owner.Addr, Epoch: owner.Epoch})
	p.stream.close(p.scheduler.node)
}

// ping answers, and gives the instance up when it falls silent after having said
// how often it speaks.
func (p *pullEnd) ping(every time.Duration) {
	watched := p.maySleep > 0
	p.maySleep = scheduling.SilenceLimit(every)
	p.say(core.Pong{})
	if !watched {
		p.watch(p.maySleep)
	}
}

func (p *pullEnd) watch(in time.Duration) {
	p.scheduler.after(in, func() {
		if !p.joined {
			return
		}
		if left := p.heard.Add(p.maySleep).Sub(p.scheduler.now()); left > 0 {
			p.watch(left)
			return
		}
		p.scheduler.note("gives up an instance", uint64(p.fn.index), 0)
		p.giveUp()
	})
}

func (p *pullEnd) pull(m core.Pull) {
	f := p.served
	p.awaits = m.LongWait.Ticket()
	p.scheduler.note("is pulled by "+p.stream.ends[0].node.name, uint64(m.Credits), uint64(len(m.Done)))
	if !p.pulled {
		p.pulled = true
		f.pulledBy(p.cid)
	}
	done := make([]scheduling.Done, 0, len(m.Done))
	for _, d := range m.Done {
		done = append(done, scheduling.Done{ID: d.ID, Execution: d.Exec, CoreWait: d.CoreWait, Unclaimed: d.Unclaimed})
		p.out = slices.DeleteFunc(p.out, func(h handed) bool { return h.id == d.ID })
	}
	loans := make([]queue.Loan, 0, len(m.Loans))
	for _, l := range m.Loans {
		loans = append(loans, queue.Loan(l))
	}
	effects := f.step(&scheduling.Pulled{CID: p.cid, Wants: !p.leaving, Credits: m.Credits, Done: done, Loans: loans, Idle: m.Idle, NodeBusy: m.NodeBusy, AwaitsCore: m.LongWait.Waited > 0 || m.Low, Awaits: m.LongWait.Ticket()})
	if _, refused := scheduling.AnswerOf[scheduling.PullRefused](effects); refused {
		p.giveUp()
	}
}

// deliver hands a ticket to the instance; lent says that it keeps the call's place.
func (p *pullEnd) deliver(t invocation.Ticket, lent bool) {
	w, now := p.scheduler.world, p.scheduler.now()
	in := w.truth.byID[t.ID]
	if p.served.outElsewhere(t, now) && !in.confused && !w.config.Adversarial {
		w.truth.broken(in, RuleTicketInOnePlace)
	}
	p.scheduler.note("hands out to "+p.stream.ends[0].node.name, uint64(w.truth.byID[t.ID].number), 0)
	// One that waits for a core may still claim it, but the queue counts on this one.
	for _, other := range p.served.pulls {
		if other.awaits == t.ID {
			other.out = slices.DeleteFunc(other.out, func(h handed) bool { return h.id == t.ID })
		}
	}
	p.out = append(p.out, handed{t.ID, t.Token, now})
	w.truth.show(t.ID, t.Token, p.cid, p.served.fn)
	p.stream.sendTicket(p.scheduler.node, core.Ticket{Ticket: t, Lent: lent})
}

// outElsewhere tells whether some instance was handed a ticket lately.
func (f *served) outElsewhere(t invocation.Ticket, now time.Time) bool {
	for _, p := range f.pulls {
		for _, h := range p.out {
			if h.id == t.ID && p.awaits != t.ID && h.token == t.Token && now.Sub(h.at) < f.scheduler.config.ClaimGrace {
				return true
			}
		}
	}
	return false
}

func (p *pullEnd) requestLeave(m core.LeaveRequest) {
	if p.leaving {
		return
	}
	answer, _ := scheduling.AnswerOf[scheduling.LeaveAnswered](p.served.step(scheduling.LeaveRequested{CID: p.cid, Idle: m.Idle}))
	if answer.Err != nil {
		p.giveUp()
		return
	}
	if answer.Granted {
		p.goes()
	}
	p.say(core.LeaveAnswer{Granted: answer.Granted, AskAgain: answer.RetryAfter})
}

// goodbye is the instance's last word but for the calls that it still runs.
func (p *pullEnd) goodbye(m core.Goodbye) {
	joined, e := p.joined, p.served.inventory.find(p.cid)
	failed := e != nil && !e.pulled && (m.Reason == core.ReasonStartFailed || m.Reason == core.ReasonStartTimedOut)
	if p.goes(); failed {
		e.leaving = false // it counts until it is gone, as one that did not start
	}
	if joined {
		p.served.step(scheduling.Left{CID: p.cid, Involuntary: m.Reason != core.ReasonDone})
	}
}

// goes notes that the instance leaves.
func (p *pullEnd) goes() {
	p.leaving, p.served.doubted = true, true
	p.forget()
	if e := p.served.inventory.find(p.cid); e != nil {
		e.leaving, e.in.going = true, true
	}
}

// end is the end of the stream: the instance may come again.
func (p *pullEnd) end() {
	if !p.joined {
		return
	}
	p.forget()
	if e := p.served.inventory.find(p.cid); e != nil {
		e.connected, e.silentSince = false, p.scheduler.now()
	}
	p.served.step(scheduling.Left{CID: p.cid, Involuntary: true})
}

func (p *pullEnd) forget() {
	p.joined = false
	if p.served == nil {
		return
	}
	p.served.pulls = slices.DeleteFunc(p.served.pulls, func(other *pullEnd) bool { return other == p })
}

func (p *pullEnd) closed(closing) { p.end() }

// unknownInstance tells an instance that it should not exist.
type unknownInstance struct{}
