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
	// Calls are the attempts with a goroutine: it waits for the claim's answer, runs the
	// call, or sends the result.
	Calls []Attempt
	// Session is the one with a connection attempt or stream; 0 for none.
	Session Session
	// FunctionEnd says how the function has ended; empty if it has not.
	FunctionEnd string
}

// audits remembers what the last audit found.
type audits struct {
	dueAt time.Time // when the next one is due
	calls reconcile.Level[Attempt]
	// absent is the session that the last audit did not find; 0 if it found it.
	absent Session
}

// due reports whether an audit is due, and if so schedules the next.
func (a *audits) due(now time.Time) bool {
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

// onAudit repairs a difference that two audits in a row have found: one that only one audit
// finds may belong to an event on its way. The end of the function is final, so one audit is
// enough for it.
func onAudit(c *Core, now time.Time, e Audit) {
	recorded := make(reconcile.Set[Attempt], len(c.calls.attempts))
	for n := range c.calls.attempts {
		recorded.Add(n)
	}
	differ := c.audits.calls.Look(reconcile.Compare(recorded, reconcile.SetOf(e.Calls...)))
	for _, n := range slices.Sorted(maps.Keys(differ.Gone)) {
		c.attemptVanished(now, n)
	}
	for _, n := range slices.Sorted(maps.Keys(differ.Unknown)) {
		c.emit(Cancel{n})
	}
	session := Session(0)
	if c.link.phase != linkDown {
		session = c.link.session
	}
	absent := Session(0)
	if session != e.Session {
		absent = session
	}
	if absent != 0 && absent == c.audits.absent {
		onLost(c, now, Lost{Session: absent, Cause: CauseBroken, Detail: "it ended unnoticed"})
	}
	c.audits.absent = absent
	if e.FunctionEnd != "" && !c.life.draining {
		onFunctionEnded(c, now, FunctionEnded{Detail: e.FunctionEnd})
	}
}

// attemptVanished ends an attempt that has no goroutine any more. A call that ran counts as
// Broken.
func (c *Core) attemptVanished(now time.Time, n Attempt) {
	switch c.calls.attempts[n].phase {
	case claiming:
		onUnreachable(c, now, Unreachable{n})
	case running:
		onCallEnded(c, now, CallEnded{Attempt: n, Detail: "it ended unnoticed"})
	}
	onDelivered(c, Delivered{n})
}
