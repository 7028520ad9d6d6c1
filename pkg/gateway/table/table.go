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
	Payload  P
}

// entry is an invocation in the table: queued if holder is empty, and claimed
// by holder otherwise.
type entry[P any] struct {
	Invocation[P]
	attempt int // of the last claim; 0 before the first
	holder  invoke.CID
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
	e.attempt++
	t.queued--
	return Claimed[P]{Payload: e.Payload, Attempt: e.attempt, Reoffered: e.offers > 1}, nil
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
	if !known || e.holder == "" || e.attempt != attempt {
		return nil, ErrStale
	}
	return e, nil
}

// Withdraw removes an invocation if it is queued, so that it will never run. It
// returns false, and changes nothing, if it is not.
func (t *Table[P]) Withdraw(id invoke.ID) (payload P, withdrawn bool) {
	e, known := t.entries[id]
	if !known || e.holder != "" {
		return payload, false
	}
	delete(t.entries, id)
	t.queued--
	return e.Payload, true
}

// Executed is what can be said of an invocation that is to be answered with an
// error now.
func (t *Table[P]) Executed(id invoke.ID) invoke.Executed {
	if e, known := t.entries[id]; known && e.holder == "" {
		return invoke.ExecutedNo
	}
	return invoke.ExecutedMaybe
}

// Due returns the queued invocations whose ticket was last offered before the
// given time, and counts them as offered now.
func (t *Table[P]) Due(before, now time.Time) []Invocation[P] {
	var due []Invocation[P]
	for _, e := range t.entries {
		if e.holder == "" && e.offered.Before(before) {
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
