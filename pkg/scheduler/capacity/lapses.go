package capacity

import (
	"maps"
	"time"
)

const (
	// firstRoomWait is for how long nothing is evicted for a function after somebody outside took the
	// room that was made for it. Each further time the wait is twice as long, up to maxRoomWait.
	firstRoomWait = 5 * time.Second
	// maxRoomWait is also for how long after a wait the next lapse counts as a further one. It exceeds
	// the time in which an evicted instance leaves and its room lapses.
	maxRoomWait = time.Minute
)

// Beneficiary is for whom room is reserved: a function here, or a peer.
type Beneficiary struct {
	// Function is its UID; empty for a peer.
	Function string
	// Loan is zero for a function.
	Loan Loan
}

// lapse is that room which was reserved for a beneficiary was not used in time. If it needs another
// eviction then, somebody outside has taken the room, such as the kube-scheduler for a pending pod. As
// long as such pods wait, every eviction only makes room for the next of them.
type lapse struct {
	// at is when it lapsed, and fresh says that no eviction was needed since.
	at    time.Time
	fresh bool
	// until is when the next eviction is allowed, and wait how long evictions waited for that.
	until time.Time
	wait  time.Duration
}

// lapses are those of functions and peers that have not got room since.
type lapses map[Beneficiary]lapse

// record records that room has lapsed.
func (l lapses) record(of Beneficiary, now time.Time) {
	last := l[of]
	last.at, last.fresh = now, true
	l[of] = last
}

// mayEvict reports whether a beneficiary that needs an eviction may have one now. After a lapse it
// first waits.
func (l lapses) mayEvict(of Beneficiary, now time.Time) bool {
	last, lapsed := l[of]
	if lapsed && last.fresh {
		last.wait = min(maxRoomWait, max(firstRoomWait, 2*last.wait))
		last.fresh, last.until = false, now.Add(last.wait)
		l[of] = last
	}
	return !now.Before(last.until)
}

// notTaken records that a beneficiary has room without an eviction.
func (l lapses) notTaken(of Beneficiary) {
	if last, lapsed := l[of]; lapsed {
		last.fresh = false
		l[of] = last
	}
}

// dropOld drops those after which nothing has lapsed for long.
func (l lapses) dropOld(now time.Time) {
	maps.DeleteFunc(l, func(_ Beneficiary, last lapse) bool { return now.Sub(later(last.at, last.until)) > maxRoomWait })
}

// HeldBack reports whether nothing is evicted for a beneficiary now, because somebody outside took the
// room that was made for it before.
func (b *nodeUsage) HeldBack(of Beneficiary, now time.Time) bool {
	return now.Before(b.lapses[of].until)
}
