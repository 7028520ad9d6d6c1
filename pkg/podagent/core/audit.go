package core

import (
	"maps"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/reconcile"
)

// auditEvery is how often an agent audits itself. Only an agent with calls wakes up for it;
// an idle one does it when something else wakes it.
const auditEvery = 5 * time.Second

// Audit is what really runs in the process. The core's own view of calls, session and
// function is a copy, which is wrong if an event was lost.
type Audit struct {
	// Calls are the attempts whose claim was sent and not answered, and the calls that run.
	Calls []Attempt
	// Conns are the connections to gateways, and the attempts to make them.
	Conns []Conn
	// Session is the one with a connection attempt or stream; 0 for none.
	Session Session
	// FunctionEnd says how the function has ended; empty if it has not.
	FunctionEnd string
}

// audits remembers what the last audit found.
type audits struct {
	dueAt time.Time // when the next one is due
	calls reconcile.Level[Attempt]
	conns reconcile.Level[Conn]
	// absent is the session that the last audit did not find; 0 if it found it.
	absent Session
}

// takeDue reports whether an audit is due, and if so schedules the next.
func (a *audits) takeDue(now time.Time) bool {
	first := a.dueAt.IsZero()
	if !first && now.Before(a.dueAt) {
		return false
	}
	a.dueAt = now.Add(auditEvery)
	return !first
}

// nextAt is when to wake up for an audit; zero without calls.
func (a *audits) nextAt(calls int) time.Time {
	if calls == 0 {
		return time.Time{}
	}
	return a.dueAt
}

// apply repairs a difference that two audits in a row have found: one that only one audit
// finds may belong to an event on its way. The end of the function is final, so one audit is
// enough for it.
func (e Audit) apply(c *Core, now time.Time) {
	c.auditConns(now, e)
	c.auditCalls(now, e)
	session := Session(0)
	if c.link.phase != linkDown {
		session = c.link.session
	}
	absent := Session(0)
	if session != e.Session {
		absent = session
	}
	if absent != 0 && absent == c.audits.absent {
		Lost{Session: absent, Cause: CauseBroken, Detail: "its end was missed"}.apply(c, now)
	}
	c.audits.absent = absent
	if e.FunctionEnd != "" && !c.life.draining {
		FunctionEnded{Detail: e.FunctionEnd}.apply(c, now)
	}
}

func (c *Core) auditConns(now time.Time, e Audit) {
	recorded := make(reconcile.Set[Conn], len(c.conns.all))
	for n, cn := range c.conns.all {
		if cn.phase != connPausing {
			recorded.Add(n)
		}
	}
	differ := c.audits.conns.Look(reconcile.Compare(recorded, reconcile.SetOf(e.Conns...)))
	for _, n := range slices.Sorted(maps.Keys(differ.Gone)) {
		ConnLost{n}.apply(c, now)
	}
	for _, n := range slices.Sorted(maps.Keys(differ.Unknown)) {
		c.emit(Disconnect{n})
	}
}

func (c *Core) auditCalls(now time.Time, e Audit) {
	recorded := make(reconcile.Set[Attempt], len(c.calls.attempts))
	for n, a := range c.calls.attempts {
		if a.sent || a.phase == running {
			recorded.Add(n)
		}
	}
	differ := c.audits.calls.Look(reconcile.Compare(recorded, reconcile.SetOf(e.Calls...)))
	for _, n := range slices.Sorted(maps.Keys(differ.Gone)) {
		c.attemptVanished(now, n)
	}
	for _, n := range slices.Sorted(maps.Keys(differ.Unknown)) {
		c.emit(Cancel{n})
	}
}

// attemptVanished ends an attempt that nobody works on any more. A call that ran counts as
// Broken.
func (c *Core) attemptVanished(now time.Time, n Attempt) {
	switch a := c.calls.attempts[n]; {
	case a == nil, a.phase == awaitingCore: // its gateway vanished with it, or it is not there yet
	case a.phase == claiming:
		c.giveBack(now, n, a, Done{ID: a.id, Unclaimed: true})
	default:
		CallEnded{Attempt: n, Detail: "its end was missed"}.apply(c, now)
	}
}
