package core

import (
	"errors"
	"time"
)

// Params are what a Core must know of its instance.
type Params struct {
	// Spare says that the instance is of no function so far. What is below
	// Owner, except Jitter, is not known then and comes with the Assignment.
	Spare bool
	// Owner is the scheduler that is tried first, host:port; empty for any. A
	// spare instance belongs to it, and tries no other.
	Owner string
	// Concurrency is how many calls the function runs at a time, at least 1.
	Concurrency int
	// BackoffAfter is how long an instance waits in vain before it goes quiet,
	// and IdleTimeout how much longer before it asks to leave.
	BackoffAfter, IdleTimeout time.Duration
	// Jitter is a factor of 1 to 1.1 on IdleTimeout, so that the instances of a
	// function leave at different times.
	Jitter float64
}

// Validate tells which field is out of its range.
func (p Params) Validate() error {
	switch {
	case p.Jitter < 1 || p.Jitter > 1.1:
		return errors.New("core: Params.Jitter must be from 1 to 1.1")
	case p.Spare && p.Owner == "":
		return errors.New("core: Params.Owner must not be empty for a spare instance")
	case p.Spare:
		return nil
	case p.Concurrency < 1:
		return errors.New("core: Params.Concurrency must be at least 1")
	case p.BackoffAfter <= 0 || p.IdleTimeout <= 0:
		return errors.New("core: Params.BackoffAfter and Params.IdleTimeout must be more than 0")
	}
	return nil
}

// Core is the state of one agent.
type Core struct {
	params Params
	link   link
	calls  calls
	idle   idleness
	life   life
	origin origin
	counts Report
	audits audits
	// wake is the time of the last WakeAt; zero if it has come.
	wake time.Time
	out  []Effect
}

// New makes a Core of valid Params.
func New(params Params) *Core {
	return &Core{
		params: params,
		link:   newLink(params),
		calls:  newCalls(),
	}
}

// Step takes note of an event and returns what to do about it, in order. The time
// must not go back from one step to the next.
func (c *Core) Step(now time.Time, e Event) []Effect {
	if c.life.over {
		return nil
	}
	c.out = nil
	e.happen(c, now)
	if !c.life.over {
		c.due(now)
		c.settleEnd(now)
		c.arm()
	}
	out := c.out
	c.out = nil
	return out
}

func (c *Core) do(e Effect) { c.out = append(c.out, e) }

// A spare instance says nothing before it is of use.
func (Begin) happen(c *Core, now time.Time) {
	c.origin.began = now
	if c.params.Spare {
		return
	}
	c.link.begin(now)
	c.dialIfDue(now)
}

func (Wake) happen(c *Core, _ time.Time) { c.wake = time.Time{} }

// due does everything whose time has come.
func (c *Core) due(now time.Time) {
	c.claimsDue(now)
	c.idleDue(now)
	c.linkDue(now)
	if c.audits.due(now) {
		c.do(Observe{})
	}
}

// arm asks to be woken for what is due next. A wake that comes too early costs less
// than to move it with every message, so it is only ever moved forward.
func (c *Core) arm() {
	if c.life.over {
		return
	}
	next := earliest(c.calls.next(), c.idleNext(), c.linkNext(), c.audits.next(len(c.calls.attempts)), c.life.giveUpAt)
	if next.IsZero() || !c.wake.IsZero() && !next.Before(c.wake) {
		return
	}
	c.wake = next
	c.do(WakeAt{next})
}

// earliest is the first of some times; those that are zero do not count.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
