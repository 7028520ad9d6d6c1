package nodeagent

import (
	"time"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
)

// lookTimes are when the Agent has looked at its instances, and when it looks next.
type lookTimes struct {
	timer kerneltimer.Waker // nil before Run
	// rests says that it is not set, as nobody is there.
	rests           bool
	lookedAt, dueAt time.Duration
}

// lookAfter sets when the next look is due.
func (l *lookTimes) lookAfter(now, after time.Duration) {
	l.rests, l.dueAt = false, now+after
	if l.timer != nil {
		l.timer.Reset(after)
	}
}

// pause is the minimum and the maximum of the time between two looks. On a busy node, which hears many messages, it leaves room
// for one that comes meanwhile.
func (t *state) pause(c Config) (minimum, maximum time.Duration) {
	if t.mode.busy {
		every := c.Mode.Every
		if t.coresAreWanted() {
			every = min(every, c.SampleEvery)
		}
		return every - every/5, every + every/5
	}
	every := t.mode.pause()
	if t.coLocation.core != nil {
		every = min(every, coLocateEvery)
	}
	return every, every
}

// coresAreWanted says whether somebody waits for what another one has of the cores. Otherwise it is early enough to know
// that a call has used up its slice, or sleeps, once somebody does.
func (t *state) coresAreWanted() bool {
	n := t.core.Counts()
	return n.Waiting+n.Preempted+n.Demoted > 0 || t.breaths.drawing > 0
}

// signEvery is how often the Agent says at most that it lives, while instances are here.
const signEvery = 50 * time.Millisecond

// lifeSigns tells somebody that the Agent lives.
type lifeSigns struct {
	say  func(instances bool) // Deps.Alive
	next time.Duration
}

func (l *lifeSigns) sign(now time.Duration, alone bool) {
	if l.say == nil || now < l.next && !alone {
		return
	}
	l.next = now + signEvery
	if alone {
		l.next = now // the next instance needs it at once
	}
	l.say(!alone)
}
