package controller

import "time"

const (
	// writeInterval is the long-run minimum time between two writes for one function: of its
	// status, and of the status and the scale of its revisions. So 1,000 functions whose
	// instances come and go all the time cost 84 writes a second, with the controller's Lease.
	writeInterval = 12 * time.Second
	// minWritePause is the minimum time between two writes of one object whose conditions have
	// changed, so that simultaneous changes are one write.
	minWritePause = time.Second
	// maxAhead bounds how far conditions may run ahead of writeInterval: that is five writes.
	maxAhead = time.Minute
)

// urgency is why an object has to be written.
type urgency int

const (
	// counts of instances wait for their turn.
	counts urgency = iota
	// conditions are written soon, unless they change again and again.
	conditions
	// decisions are what other programs act on: where calls go, and which revisions are
	// proven. They are written at once; the deciding code bounds their number.
	decisions
)

// pace is when counts may be written for a function again: later by writeInterval for each
// write. It is zero for a function that was never written for.
type pace struct{ due time.Time }

// delay is the time until something may be written of an object that was last written at
// some time, which may be zero; 0 if it may be now.
func (p pace) delay(now, last time.Time, as urgency) time.Duration {
	switch as {
	case decisions:
		return 0
	case conditions:
		return max(0, last.Add(minWritePause).Sub(now), p.due.Add(-maxAhead).Sub(now))
	default:
		return max(0, p.due.Sub(now))
	}
}

// spend is the pace after a write.
func (p pace) spend(now time.Time, as urgency) pace {
	from := now
	if as != decisions && p.due.After(now) {
		from = p.due
	}
	if due := from.Add(writeInterval); due.After(p.due) {
		return pace{due}
	}
	return p
}
