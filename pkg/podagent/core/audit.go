package core

import (
	"maps"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/internal/reconcile"
)

// auditEvery is how often an agent looks what is really there. Only calls make it wake
// up for that: an idle one looks when it is awake anyway.
const auditEvery = 5 * time.Second

// Audit says what is seen one level below: what is believed of calls, of the session
// and of the function is a copy, which is wrong if an event was lost.
type Audit struct {
	// Calls are the attempts that somebody works on: their claim is to be answered, their
	// call runs, or their result is on its way.
	Calls []Attempt
	// Session is the one whose dial or stream is there; 0 if none is.
	Session Session
	// FunctionEnd says how the function has ended; empty if it has not.
	FunctionEnd string
}

// audits remembers what the last audit found.
type audits struct {
	at    time.Time // when the next one is due
	calls reconcile.Level[Attempt]
	// absent is the session that the last audit did not find; 0 if it found it.
	absent Session
}

// due tells whether it is time to look, and notes that it is done.
func (a *audits) due(now time.Time) bool {
	first := a.at.IsZero()
	if !first && now.Before(a.at) {
		return false
	}
	a.at = now.Add(auditEvery)
	return !first
}

// next is when to be woken for it; zero without calls.
func (a *audits) next(calls int) time.Time {
	if calls == 0 {
		return time.Time{}
	}
	return a.at
}

// An Audit mends what two of them in a row have found: what one alone finds is news that
// is under way. That the function has ended is never undone.
func (e Audit) happen(c *Core, now time.Time) {
	believed := make(reconcile.Set[Attempt], len(c.calls.attempts))
	for n := range c.calls.attempts {
		believed.Add(n)
	}
	differ := c.audits.calls.Look(reconcile.Compare(believed, reconcile.SetOf(e.Calls...)))
	for _, n := range slices.Sorted(maps.Keys(differ.Gone)) {
		c.vanished(now, n)
	}
	for _, n := range slices.Sorted(maps.Keys(differ.Unknown)) {
		c.do(Cancel{n})
	}
	session := Session(0)
	if c.link.phase != linkApart {
		session = c.link.session
	}
	absent := Session(0)
	if session != e.Session {
		absent = session
	}
	if absent != 0 && absent == c.audits.absent {
		Lost{Session: absent, Why: WhyBroken, Detail: "its end was not heard of"}.happen(c, now)
	}
	c.audits.absent = absent
	if e.FunctionEnd != "" && !c.life.leaving {
		FunctionEnded{Detail: e.FunctionEnd}.happen(c, now)
	}
}

// vanished ends an attempt that nobody works on. Of a call that ran it is unknown what
// the function still does.
func (c *Core) vanished(now time.Time, n Attempt) {
	switch c.calls.attempts[n].phase {
	case claiming:
		Unreachable{n}.happen(c, now)
	case running:
		CallEnded{Attempt: n, Detail: "its end was not heard of"}.happen(c, now)
	}
	Delivered{n}.happen(c, now)
}
