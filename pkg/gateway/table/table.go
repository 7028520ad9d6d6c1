package table

import (
	"errors"
	"time"

	"github.com/windlass-dev/windlass/pkg/invoke"
)

var (
	// ErrFull is returned by Admit when the table is at its capacity.
	ErrFull = errors.New("table: too many invocations")
	// ErrNotWaiting is returned by Claim for an invocation that is claimed
	// already, has ended, or never was.
	ErrNotWaiting = errors.New("table: invocation is not waiting")
	// ErrBadToken is returned by Claim for a token that is not the ticket's.
	ErrBadToken = errors.New("table: wrong claim token")
	// ErrStale is returned by Release and End for an attempt that is not
	// the current one.
	ErrStale = errors.New("table: attempt is over")
)

// Invocation is what an invocation is admitted with. P is what its owner keeps
// with it.
type Invocation[P any] struct {
	ID          invoke.ID
	FunctionUID string
	Token       invoke.Token
	Admitted    time.Time
	// Deadline is when it stops waiting.
	Deadline time.Time
	// Attempt is the number of claims so far.
	Attempt int
	Payload P
}

// entry is an invocation in the table: queued if holder is empty, and claimed
// by holder otherwise.
type entry[P any] struct {
	Invocation[P]
	holder  invoke.CID
	started bool      // it may have run without, or before, a claim
	offered time.Time // last time that its ticket was handed out
	offers  int
}

// Table is the truth about invocations. It is not safe for concurrent use.
type Table[P any] struct {
	capacity int
	entries  map[invoke.ID]*entry[P]
	queued   int
}

// New makes a Table for at most capacity invocations.
func New[P any](capacity int) *Table[P] {
	return &Table[P]{capacity: capacity, entries: make(map[invoke.ID]*entry[P])}
}

// Admit adds a queued invocation whose ticket is about to be offered. The error
// is ErrFull or nil.
func (t *Table[P]) Admit(in Invocation[P], now time.Time) error {
	if len(t.entries) >= t.capacity {
		return ErrFull
	}
	t.entries[in.ID] = &entry[P]{Invocation: in, offered: now, offers: 1}
	t.queued++
	return nil
}

// Claimed is a granted claim.
type Claimed[P any] struct {
	Payload P
	// Attempt counts claims from 1 and names this one.
	Attempt int
	// Reoffered says that more than one ticket was handed out, so that
	// another may still be in a queue.
	Reoffered bool
}

// Claim gives a queued invocation to an instance. The error is ErrNotWaiting,
// ErrBadToken or nil.
func (t *Table[P]) Claim(id invoke.ID, token invoke.Token, cid invoke.CID) (Claimed[P], error) {
	e, known := t.entries[id]
	switch {
	case !known || e.holder != "":
		return Claimed[P]{}, ErrNotWaiting
	case !e.Token.Equal(token) || cid == "":
		return Claimed[P]{}, ErrBadToken
	}
	e.holder = cid
	e.Attempt++
	t.queued--
	return Claimed[P]{Payload: e.Payload, Attempt: e.Attempt, Reoffered: e.offers > 1}, nil
}

// Release queues a claimed invocation again, under a new token, and returns it:
// its ticket is about to be offered. The error is ErrStale or nil.
func (t *Table[P]) Release(id invoke.ID, attempt int, token invoke.Token, now time.Time) (Invocation[P], error) {
	e, err := t.current(id, attempt)
	if err != nil {
		return Invocation[P]{}, err
	}
	e.holder, e.Token = "", token
	e.offered = now
	e.offers++
	t.queued++
	return e.Invocation, nil
}

// Retry queues a claimed invocation again, under a new token, although the
// attempt may have run: it is for functions that bear it. It waits until the given
// deadline, or until its own if that is later. The error is ErrStale or nil.
func (t *Table[P]) Retry(id invoke.ID, attempt int, token invoke.Token, now, deadline time.Time) (Invocation[P], error) {
	if _, err := t.Release(id, attempt, token, now); err != nil {
		return Invocation[P]{}, err
	}
	e := t.entries[id]
	e.started = true
	if e.Deadline.Before(deadline) {
		e.Deadline = deadline
	}
	return e.Invocation, nil
}

// Entrust says that the ticket which is about to be offered carries the request,
// so that whoever has it may run it before it claims.
func (t *Table[P]) Entrust(id invoke.ID) {
	if e, known := t.entries[id]; known {
		e.started = true
	}
}

// End removes a claimed invocation. The error is ErrStale or nil.
func (t *Table[P]) End(id invoke.ID, attempt int) error {
	if _, err := t.current(id, attempt); err != nil {
		return err
	}
	delete(t.entries, id)
	return nil
}

func (t *Table[P]) current(id invoke.ID, attempt int) (*entry[P], error) {
	e, known := t.entries[id]
	if !known || e.holder == "" || e.Attempt != attempt {
		return nil, ErrStale
	}
	return e, nil
}

// Withdraw removes an invocation if it is queued, so that it will not run from
// now on, and says whether it may have run before. It returns false, and changes
// nothing, if it is not queued.
func (t *Table[P]) Withdraw(id invoke.ID) (payload P, executed invoke.Executed, withdrawn bool) {
	e, known := t.entries[id]
	if !known || e.holder != "" {
		return payload, invoke.ExecutedMaybe, false
	}
	executed = t.Executed(id)
	delete(t.entries, id)
	t.queued--
	return e.Payload, executed, true
}

// Expire is Withdraw for an invocation whose deadline has come; it changes nothing at
// any other.
func (t *Table[P]) Expire(id invoke.ID, now time.Time) (payload P, executed invoke.Executed, expired bool) {
	if e, known := t.entries[id]; !known || now.Before(e.Deadline) {
		return payload, invoke.ExecutedMaybe, false
	}
	return t.Withdraw(id)
}

// Executed is what can be said of an invocation that is to be answered with an
// error now.
func (t *Table[P]) Executed(id invoke.ID) invoke.Executed {
	if e, known := t.entries[id]; known && e.holder == "" && !e.started {
		return invoke.ExecutedNo
	}
	return invoke.ExecutedMaybe
}

// Due returns the queued invocations whose ticket is to be offered again, by what
// it was admitted with and when it was last offered, and counts them as offered
// now. An invocation that no queue has was never offered: the time is zero.
func (t *Table[P]) Due(now time.Time, isDue func(payload P, offered time.Time) bool) []Invocation[P] {
	var due []Invocation[P]
	for _, e := range t.entries {
		if e.holder == "" && isDue(e.Payload, e.offered) {
			e.offered = now
			e.offers++
			due = append(due, e.Invocation)
		}
	}
	return due
}

// Unoffer says that no queue has the ticket of an invocation any more, so that it
// is due. An invocation that is claimed or gone is left as it is.
func (t *Table[P]) Unoffer(id invoke.ID) {
	if e, known := t.entries[id]; known {
		e.offered = time.Time{}
	}
}

// Len is the number of invocations.
func (t *Table[P]) Len() int { return len(t.entries) }

// Queued is the number of invocations that wait.
func (t *Table[P]) Queued() int { return t.queued }
