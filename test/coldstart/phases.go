package main

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// coarse is how far the start time of a process may be from the truth: two ticks
// of the kernel's.
const coarse = 20 * time.Millisecond

// marks are the moments of one cold start. The zero time is one that is not known.
type marks struct {
	sent, decided, created   time.Time
	sandbox, agent, function time.Time // first processes
	joined, ready            time.Time
	granted                  time.Time
	answered                 time.Time
	execution                time.Duration // negative if not known
}

// phase is a part of a cold start.
type phase struct {
	name string
	took time.Duration
	// known is false if one of its ends is not.
	known bool
	// ours says that it is Windlass's own work, and beside that another one
	// goes on meanwhile.
	ours, beside bool
}

// phases turns moments into phases. Those that are not beside others add up to
// the time from sent to answered if all are known. The error says that moments
// are in an order that cannot be.
func (m marks) phases() ([]phase, error) {
	containers := later(m.agent, m.function)
	executed := time.Time{}
	if !m.granted.IsZero() && m.execution >= 0 {
		executed = m.granted.Add(m.execution)
	}
	list := []phase{
		between("decide", m.sent, m.decided),
		between("api_create", m.decided, m.created),
		{name: "bind", known: true},
		between("sandbox", m.created, m.sandbox),
		between("containers", m.sandbox, containers),
		between("ready", containers, m.ready),
		between("claim", m.ready, m.granted),
		{name: "execution", took: max(m.execution, 0), known: m.execution >= 0},
		between("return", executed, m.answered),
		between("agent_hello", m.agent, m.joined),
	}
	var errs []error
	for i := range list {
		s := &list[i]
		switch s.name {
		case "decide", "api_create", "claim", "return":
			s.ours = true
		case "agent_hello":
			s.ours, s.beside = true, true
		}
		if s.known && s.took < -coarse {
			errs = append(errs, fmt.Errorf("%s took %v: do all clocks agree?", s.name, s.took))
		}
	}
	return list, errors.Join(errs...)
}

func between(name string, from, to time.Time) phase {
	if from.IsZero() || to.IsZero() {
		return phase{name: name}
	}
	return phase{name: name, took: to.Sub(from), known: true}
}

// later is the later of two times, and not known if one is not.
func later(a, b time.Time) time.Time {
	switch {
	case a.IsZero() || b.IsZero():
		return time.Time{}
	case a.After(b):
		return a
	}
	return b
}

// total is the time from the request to its answer.
func (m marks) total() time.Duration { return m.answered.Sub(m.sent) }

// sum adds up the phases that follow each other; known is false if one is not.
func sum(list []phase) (took time.Duration, known bool) {
	for _, s := range list {
		if s.beside {
			continue
		}
		if !s.known {
			return 0, false
		}
		took += s.took
	}
	return took, true
}

// quantile is the smallest of the durations that a share of them does not exceed.
// There must be one.
func quantile(durations []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	rank := int(share*float64(len(sorted))+0.999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}
