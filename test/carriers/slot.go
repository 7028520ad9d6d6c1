package main

import (
	"errors"
	"sync"
	"time"
)

// Why an agent does not run a call that came.
var (
	errBusy      = errors.New("a call came for a place that is busy")
	errOldNumber = errors.New("the number of a call is not above that of the last one")
	errTakenBack = errors.New("the place has been taken back")
)

// slot is an agent's only place. The agent is its arbiter, whatever the carrier: it lets one call
// in at a time, with a number above all before, and none while the place is taken back.
type slot struct {
	mu        sync.Mutex // guards everything below
	last      int64
	busy      bool
	takenBack bool
	deadline  time.Time
	cancel    func()
	// timer serves all calls. It is set again only when it fires, or for a call that must end
	// before, so that most calls start none.
	timer *time.Timer
	armed time.Time // zero if the timer is not set
}

// admit lets a call in. cancel ends it early.
func (s *slot) admit(number int64, deadline time.Time, cancel func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.takenBack:
		return errTakenBack
	case s.busy:
		return errBusy
	case number <= s.last:
		return errOldNumber
	}
	s.last, s.busy, s.deadline, s.cancel = number, true, deadline, cancel
	if s.armed.IsZero() || deadline.Before(s.armed) {
		s.arm(deadline)
	}
	return nil
}

// arm sets the timer. The caller holds the lock.
func (s *slot) arm(at time.Time) {
	s.armed = at
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(at), s.onTimer)
		return
	}
	s.timer.Reset(time.Until(at))
}

// onTimer ends a call whose time is over.
func (s *slot) onTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = time.Time{}
	switch {
	case !s.busy:
	case time.Now().Before(s.deadline):
		s.arm(s.deadline)
	default:
		s.cancel()
	}
}

// vacate lets the next call in. It is false if the place is taken back.
func (s *slot) vacate() (keeps bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.cancel = false, nil
	return !s.takenBack
}

// takeBack lets no further call in.
func (s *slot) takeBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takenBack = true
}

// abandon ends the call that runs, if there is one.
func (s *slot) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		s.cancel()
	}
}

// isTakenBack reports whether no further call is let in.
func (s *slot) isTakenBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takenBack
}
