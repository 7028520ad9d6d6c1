package lambda

import (
	"errors"
	"slices"
)

// extraPolls is how many more requests for the next event than the function
// has concurrency may wait. Some runtime clients poll from more threads than
// that, and the end of a connection is not always seen at once.
const extraPolls = 1024

var (
	errEnded     = errors.New("the runtime client has failed or its server has ended")
	errDuplicate = errors.New("a call with the same id is here already")
	errFull      = errors.New("as many calls as the function's concurrency are here already")
)

// state is where one call is. A call that ended is not in the machine.
type state uint8

const (
	queued    state = iota + 1 // waits for the runtime client to ask
	handed                     // is being written to the runtime client
	overtaken                  // is being written, and the runtime client asked again
	running                    // was written
	answering                  // its answer is being read
	abandoned                  // given up: its answer is taken and thrown away
	timedOut                   // out of time: its answer is refused
)

// machine decides what the runtime client may do when, and who gets which
// call. It is not safe for concurrent use. Its sizes are bounded: by
// concurrency, and by extraPolls beyond it.
type machine struct {
	concurrency int
	began       bool // the runtime client asked for an event
	ended       bool // nothing more will happen

	calls  map[string]state
	queue  []string // queued calls, oldest first
	parked []uint64 // requests for the next event, newest last
	// lapsed are calls, oldest first, whose answers may still come. A runtime client cannot be
	// busy with more than concurrency of them.
	lapsed []string
	// answered are calls, oldest first, to distinguish a second answer from one to an unknown
	// call.
	answered []string
}

func newMachine(concurrency int) *machine {
	return &machine{concurrency: concurrency, calls: map[string]state{}}
}

// submit adds a call.
func (m *machine) submit(id string) error {
	switch {
	case m.ended:
		return errEnded
	case m.calls[id] != 0:
		return errDuplicate
	case len(m.calls)-len(m.lapsed) >= m.concurrency:
		return errFull
	}
	m.calls[id] = queued
	m.queue = append(m.queue, id)
	return nil
}

// abandonCall ends a call from the side of its caller. It says whether the function
// may have seen it.
func (m *machine) abandonCall(id string, outOfTime bool) (seen bool) {
	switch m.calls[id] {
	case queued:
		m.queue = without(m.queue, id)
		delete(m.calls, id)
		return false
	case handed, overtaken, running, answering:
		m.calls[id] = abandoned
		if outOfTime {
			m.calls[id] = timedOut
		}
		m.lapsed = append(m.lapsed, id)
		if len(m.lapsed) > m.concurrency {
			m.removeCall(m.lapsed[0])
		}
	}
	return true
}

// parkPoll parks a request for the next event. A runtime client that does one call
// at a time has thereby finished the calls that it returns, without an answer.
// Of a call that is being written this is known when that has ended, since it may
// be written to a connection that the runtime client gave up before it asked again.
func (m *machine) parkPoll(poll uint64) (unanswered []string, no *refusal) {
	if m.ended || len(m.parked) >= m.concurrency+extraPolls {
		return nil, &refusedState
	}
	m.began = true
	m.parked = append(m.parked, poll)
	if m.concurrency > 1 {
		return nil, nil
	}
	for id, s := range m.calls {
		switch s {
		case handed:
			m.calls[id] = overtaken
		case running:
			unanswered = append(unanswered, id)
		}
	}
	for _, id := range unanswered {
		delete(m.calls, id)
	}
	for len(m.lapsed) > 0 {
		m.removeCall(m.lapsed[0])
	}
	return unanswered, nil
}

// unpark takes back a parked request. It says false if a call was matched with
// it meanwhile.
func (m *machine) unpark(poll uint64) bool {
	n := len(m.parked)
	m.parked = without(m.parked, poll)
	return len(m.parked) < n
}

// match hands the oldest call to the newest parked request, which is the one
// whose connection is most likely alive.
func (m *machine) match() (poll uint64, id string, ok bool) {
	if len(m.queue) == 0 || len(m.parked) == 0 {
		return 0, "", false
	}
	last := len(m.parked) - 1
	poll, id = m.parked[last], m.queue[0]
	m.parked, m.queue = m.parked[:last], m.queue[1:]
	m.calls[id] = handed
	return poll, id, true
}

// sent says that a handed call was written. It returns whether the runtime client
// has finished it without an answer meanwhile.
func (m *machine) sent(id string) (unanswered bool) {
	switch m.calls[id] {
	case handed:
		m.calls[id] = running
	case overtaken:
		m.removeCall(id)
		return true
	}
	return false
}

// unsent says that no byte of a handed call was written: it is the next again.
func (m *machine) unsent(id string) {
	switch m.calls[id] {
	case handed, overtaken:
		m.calls[id] = queued
		m.queue = slices.Insert(m.queue, 0, id)
	case abandoned, timedOut:
		m.removeCall(id)
	}
}

// lost says that the connection of a call broke while it was being written or
// answered. It returns whether the call was still wanted.
func (m *machine) lost(id string) bool {
	s := m.calls[id]
	m.removeCall(id)
	return s == handed || s == overtaken || s == running || s == answering
}

// answer begins an answer. discard says that the call has ended without it.
func (m *machine) answer(id string) (discard bool, no *refusal) {
	switch m.calls[id] {
	case handed, running:
		m.calls[id] = answering
		return false, nil
	case abandoned:
		m.markAnswered(id)
		return true, nil
	case answering:
		return false, &refusedState
	}
	if slices.Contains(m.answered, id) {
		return false, &refusedState
	}
	return false, &refusedID
}

// finishAnswer ends an answer that was begun. If discard, the call was given up
// meanwhile.
func (m *machine) finishAnswer(id string) (discard bool, no *refusal) {
	s := m.calls[id]
	if s != answering && s != abandoned {
		m.removeCall(id)
		return true, &refusedID
	}
	m.markAnswered(id)
	return s == abandoned, nil
}

// initError says that the runtime client reports that it cannot start.
func (m *machine) initError() *refusal {
	if m.began || m.ended {
		return &refusedState
	}
	m.ended = true
	return nil
}

// markAnswered remembers that a call was answered.
func (m *machine) markAnswered(id string) {
	m.removeCall(id)
	m.answered = append(m.answered, id)
	if len(m.answered) > m.concurrency {
		m.answered = m.answered[1:]
	}
}

func (m *machine) removeCall(id string) {
	delete(m.calls, id)
	m.queue = without(m.queue, id)
	m.lapsed = without(m.lapsed, id)
}

func without[T comparable](s []T, v T) []T {
	if i := slices.Index(s, v); i >= 0 {
		return slices.Delete(s, i, i+1)
	}
	return s
}
