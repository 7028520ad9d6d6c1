package sim

import (
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
	"github.com/windlass-dev/windlass/pkg/queue"
)

// leavePolicy is when an idle instance may leave.
var leavePolicy = queue.LeavePolicy{IdleTimeout: backoffAfter + idleTimeout, KeepLast: time.Hour}

// pullEnd is a scheduler's end of an instance's pulls.
type pullEnd struct {
	scheduler *scheduler
	served    *served
	cid       invoke.CID
	stream    *stream
	joined    bool
	leaving   bool
	heard     time.Time
	// every is how often it pings; 0 until it has said so.
	every time.Duration
	// out is what the instance was handed here and has not given back.
	out []handed
}

type handed struct {
	id    invoke.ID
	token invoke.Token
	at    time.Time
}

func (p *pullEnd) opened() {}

// hangUpRequest is the end of what an instance has to say.
type hangUpRequest struct{}

func (p *pullEnd) take(m any) {
	p.heard = p.scheduler.now()
	switch m := m.(type) {
	case core.Hello:
		p.hello()
	case core.Pull:
		p.pull(m)
	case core.LeaveRequest:
		p.requestLeave(m)
	case core.Goodbye:
		p.leaving = true
		p.depart(m.Reason != core.ReasonDone)
	case core.Ping:
		p.ping(m.Every)
	case hangUpRequest:
		p.end()
		p.stream.close(p.scheduler.node)
	}
}

func (p *pullEnd) say(r core.Reply) {
	p.stream.send(p.scheduler.node, r)
}

// hello lets the instance join, or sends it to where it belongs.
func (p *pullEnd) hello() {
	f := p.served
	f.reconsider()
	switch {
	case !p.scheduler.world.platform.knows(p.cid):
		p.stream.send(p.scheduler.node, unknownInstance{})
		p.stream.close(p.scheduler.node)
	case !f.serving:
		p.moved()
	default:
		p.join()
	}
}

// join lets the instance join. One that opens another stream has lost the one
// before, even if that is not known here yet.
func (p *pullEnd) join() {
	f := p.served
	for _, before := range slices.Clone(f.pulls) {
		if before.cid == p.cid {
			before.giveUp()
		}
	}
	if f.queue.Join(p.cid, f.fn.concurrency) != nil {
		p.stream.close(p.scheduler.node)
		return
	}
	p.joined = true
	f.pulls = append(f.pulls, p)
	p.say(core.Welcome{Epoch: f.term.Epoch})
}

// giveUp ends the stream.
func (p *pullEnd) giveUp() {
	p.end()
	p.stream.close(p.scheduler.node)
}

// moved names the owner and ends the stream.
func (p *pullEnd) moved() {
	p.joined = false
	owner := p.served.elsewhere()
	p.say(core.Moved{Addr: owner.Addr, Epoch: owner.Epoch})
	p.stream.close(p.scheduler.node)
}

// silentTimes is how many of its own pings an instance may miss.
const silentTimes = 4

// ping answers, and gives the instance up when it falls silent after having said
// how often it speaks.
func (p *pullEnd) ping(every time.Duration) {
	watched := p.every > 0
	p.every = every
	p.say(core.Pong{})
	if !watched {
		p.watch(silentTimes * every)
	}
}

func (p *pullEnd) watch(in time.Duration) {
	p.scheduler.after(in, func() {
		if !p.joined {
			return
		}
		if left := p.heard.Add(silentTimes * p.every).Sub(p.scheduler.now()); left > 0 {
			p.watch(left)
			return
		}
		p.scheduler.note("gives up an instance", uint64(p.served.fn.index), 0)
		p.giveUp()
	})
}

func (p *pullEnd) pull(m core.Pull) {
	if !p.joined {
		return
	}
	f := p.served
	f.starts.Observe(p.scheduler.world.platform.pulled(p.cid))
	p.scheduler.note("is pulled by "+p.stream.ends[0].node.name, uint64(m.Credits), uint64(len(m.Done)))
	for _, d := range m.Done {
		if d.Exec > 0 {
			p.observe(d.Exec)
		}
		if d.Unclaimed {
			f.queue.GiveBack(p.cid, d.ID, p.scheduler.now())
			f.tickets.givenBack(p.cid, d.ID, p.scheduler.now())
		} else {
			f.queue.Done(p.cid, d.ID)
			f.tickets.done(p.cid, d.ID)
		}
		p.out = slices.DeleteFunc(p.out, func(h handed) bool { return h.id == d.ID })
	}
	if !p.leaving && f.queue.Pull(p.cid, m.Credits, p.scheduler.now()) == nil {
		f.tickets.pulled(p.cid, m.Credits)
		f.match()
	}
}

// observe learns from an execution time, which is what an instance says.
func (p *pullEnd) observe(exec time.Duration) {
	f := p.served
	f.executions.Observe(min(exec, f.fn.timeout))
}

// deliver hands a ticket to the instance.
func (p *pullEnd) deliver(t invoke.Ticket) {
	w, now := p.scheduler.world, p.scheduler.now()
	in := w.ledger.byID[t.ID]
	if p.served.outElsewhere(t, now) && !in.confused && !w.config.Adversarial {
		w.ledger.broken(in, RuleTicketInOnePlace)
	}
	p.scheduler.note("hands out to "+p.stream.ends[0].node.name, uint64(w.ledger.byID[t.ID].number), 0)
	p.out = append(p.out, handed{t.ID, t.Token, now})
	w.ledger.show(t.ID, t.Token, p.cid)
	ticket := core.Ticket{Ticket: t, Request: t.Request != nil}
	p.stream.sendTicket(p.scheduler.node, ticket)
}

// outElsewhere tells whether some instance was handed a ticket lately.
func (f *served) outElsewhere(t invoke.Ticket, now time.Time) bool {
	for _, p := range f.pulls {
		for _, h := range p.out {
			if h.id == t.ID && h.token == t.Token && now.Sub(h.at) < claimGrace {
				return true
			}
		}
	}
	return false
}

func (p *pullEnd) requestLeave(m core.LeaveRequest) {
	if !p.joined || p.leaving {
		return
	}
	answer, err := p.served.queue.RequestLeave(p.cid, m.Idle, leavePolicy)
	if err != nil {
		return
	}
	if answer.Granted {
		p.leaving = true
		p.forget()
		p.served.tickets.mayLeave(p.cid, p.scheduler.now())
		p.scheduler.world.platform.leaving(p.cid)
	}
	p.say(core.LeaveAnswer{Granted: answer.Granted, AskAgain: answer.AskAgain})
}

// depart takes the instance out of the queue. One that was needed is replaced.
func (p *pullEnd) depart(involuntary bool) {
	if !p.joined {
		return
	}
	p.forget()
	if held := p.served.leave(p.cid); held > 0 && involuntary {
		p.served.lost++
	}
	p.scheduler.world.platform.leaving(p.cid)
	p.served.match()
}

// end is the end of the stream: the instance may come again.
func (p *pullEnd) end() {
	if !p.joined {
		return
	}
	p.forget()
	p.served.leave(p.cid)
	p.served.match()
}

// leave takes an instance out of the queue, and returns how many tickets it held.
func (f *served) leave(cid invoke.CID) int {
	now := f.scheduler.now()
	f.tickets.left(cid, now)
	return f.queue.Leave(cid, now)
}

func (p *pullEnd) forget() {
	p.joined = false
	p.served.pulls = slices.DeleteFunc(p.served.pulls, func(other *pullEnd) bool { return other == p })
}

func (p *pullEnd) closed(closing) { p.end() }

// unknownInstance tells an instance that it should not exist.
type unknownInstance struct{}
