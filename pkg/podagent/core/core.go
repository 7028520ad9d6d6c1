package core

import (
	"errors"
	"time"
)

// Params are the properties of the instance that a Core uses.
type Params struct {
	// Spare says that the instance has no function yet. The fields below Owner, except Jitter,
	// then come with the Assignment.
	Spare bool
	// Owner is the scheduler that is tried first, host:port; empty for any. A
	// spare instance belongs to it, and tries no other.
	Owner string
	// Concurrency is how many calls the function runs at a time, at least 1.
	Concurrency int
	// BackoffAfter is how long an instance waits without a call before it goes quiet, and
	// IdleTimeout how much longer before it asks to leave.
	BackoffAfter, IdleTimeout time.Duration
	// Jitter is a factor of 1 to 1.1 on IdleTimeout, so that the instances of a
	// function leave at different times.
	Jitter float64
}

// Validate returns an error that names the field that is out of its range.
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
	params  Params
	link    link
	calls   calls
	conns   conns
	node    node
	idle    idleness
	life    lifecycle
	startup startup
	counts  Report
	audits  audits
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
		conns:  newConns(),
	}
}

// Step applies an event and returns its effects, in order. The time must not go back from
// one step to the next.
func (c *Core) Step(now time.Time, e Event) []Effect {
	if c.life.over {
		return nil
	}
	c.out = nil
	e.apply(c, now)
	if !c.life.over {
		c.due(now)
		c.advanceDrain(now)
		c.arm()
	}
	out := c.out
	c.out = nil
	return out
}

func (c *Core) emit(e Effect) {
	if c.out == nil {
		c.out = make([]Effect, 0, usualEffects)
	}
	c.out = append(c.out, e)
}

// usualEffects is how many effects an event of a warm call has.
const usualEffects = 2

// A spare instance connects once its runtime is ready.
func (Begin) apply(c *Core, now time.Time) {
	c.startup.began = now
	if c.params.Spare {
		return
	}
	c.link.enable(now)
	c.dialIfDue(now)
}

func (Wake) apply(c *Core, _ time.Time) { c.wake = time.Time{} }

// due does everything that is due.
func (c *Core) due(now time.Time) {
	c.nodeDue(now)
	c.claimsDue(now)
	c.idleDue(now)
	c.connsDue(now)
	c.linkDue(now)
	c.shareDue(now)
	if c.audits.takeDue(now) {
		c.emit(RunAudit{})
	}
}

// arm sets the timer for what is due next. Waking too early costs less than resetting the
// timer with every message, so it is only ever moved forward.
func (c *Core) arm() {
	if c.life.over {
		return
	}
	next := earliest(c.nodeNext(), c.calls.nextClaimDeadline(), c.idleNext(), c.linkNext(), c.conns.due, c.shareNext(),
		c.audits.nextAt(c.calls.held()), c.life.goodbyeDeadline)
	if next.IsZero() || !c.wake.IsZero() && !next.Before(c.wake) {
		return
	}
	c.wake = next
	c.emit(WakeAt{next})
}

// earliest is the first of some times, ignoring zero.
func earliest(times ...time.Time) time.Time {
	var first time.Time
	for _, t := range times {
		if !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first
}
