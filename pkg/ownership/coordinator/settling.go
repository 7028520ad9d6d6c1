package coordinator

import "time"

const (
	// settleTimes bounds, in times of Config.Settle, how long members that
	// come one after the other delay the first claim.
	settleTimes = 6
	// returnGrace is how long, after silence of the store, those who held
	// slots are waited for. It is above the time of a try to reach the store
	// and the longest pause after it.
	returnGrace = 8 * time.Second
)

// settling is the time in which nothing is claimed but the slots that are held, so that
// other members have time to join, or to come back.
type settling struct {
	until time.Time
	// latest is until when further members may extend it.
	latest   time.Time
	lastNews time.Time // when there was news of any kind
}

// recordNews takes note of news. If there were none for so long that leases may have
// ended meanwhile for no other reason, others are given time to come back and
// claim what they hold.
func (c *settling) recordNews(now time.Time, ttl time.Duration) {
	// A lease is renewed each third of its time.
	if !c.lastNews.IsZero() && now.Sub(c.lastNews) > ttl*2/3 {
		c.until = now.Add(returnGrace)
	}
	if now.After(c.lastNews) {
		c.lastNews = now
	}
}

// start waits for further members for the first time.
func (c *settling) start(now time.Time, settle time.Duration) {
	c.until, c.latest = now.Add(settle), now.Add(settleTimes*settle)
}

// extend waits for further members again, since one has come.
func (c *settling) extend(now time.Time, settle time.Duration) {
	if settled := now.Add(settle); now.Before(c.until) && settled.After(c.until) && !settled.After(c.latest) {
		c.until = settled
	}
}

// wakeup is when there is something to decide on.
type wakeup struct {
	// changed says that there is something new, wake when there will be at the latest.
	changed bool
	wake    time.Time
}

// Wake is when Next is to be asked again even if there are no news; zero if it
// need not be.
func (a *wakeup) Wake() time.Time { return a.wake }

// pending tells whether there is something to decide on now.
func (a *wakeup) pending(now time.Time) bool {
	return a.changed || !a.wake.IsZero() && !now.Before(a.wake)
}

// wakeBy makes Wake no later than a time.
func (a *wakeup) wakeBy(t time.Time) {
	if a.wake.IsZero() || t.Before(a.wake) {
		a.wake = t
	}
}
