package coordinator

import "time"

const (
	// settleTimes bounds, in times of Config.Settle, how long members that
	// come one after the other delay the first claim.
	settleTimes = 6
	// returnTime is how long, after silence of the store, those who held
	// slots are waited for. It is above the time of a try to reach the store
	// and the longest pause after it.
	returnTime = 8 * time.Second
)

// calm is until when nothing is claimed but what is held, so that others have time to
// come, or to come back.
type calm struct {
	until time.Time
	// latest is until when further members may extend it.
	latest time.Time
	heard  time.Time // when there was news of any kind
}

// hear takes note of news. If there were none for so long that leases may have
// ended meanwhile for no other reason, others are given time to come back and
// claim what they hold.
func (c *calm) hear(now time.Time, ttl time.Duration) {
	// A lease is renewed each third of its time.
	if !c.heard.IsZero() && now.Sub(c.heard) > ttl*2/3 {
		c.until = now.Add(returnTime)
	}
	if now.After(c.heard) {
		c.heard = now
	}
}

// begin waits for further members for the first time.
func (c *calm) begin(now time.Time, settle time.Duration) {
	c.until, c.latest = now.Add(settle), now.Add(settleTimes*settle)
}

// extend waits for further members again, since one has come.
func (c *calm) extend(now time.Time, settle time.Duration) {
	if settled := now.Add(settle); now.Before(c.until) && settled.After(c.until) && !settled.After(c.latest) {
		c.until = settled
	}
}

// alarm is when there is something to decide on.
type alarm struct {
	// fresh says that there is something new, wake when there will be at the latest.
	fresh bool
	wake  time.Time
}

// Wake is when Next is to be asked again even if there are no news; zero if it
// need not be.
func (a *alarm) Wake() time.Time { return a.wake }

// rings tells whether there is something to decide on now.
func (a *alarm) rings(now time.Time) bool {
	return a.fresh || !a.wake.IsZero() && !now.Before(a.wake)
}

// at makes Wake no later than a time.
func (a *alarm) at(t time.Time) {
	if a.wake.IsZero() || t.Before(a.wake) {
		a.wake = t
	}
}
