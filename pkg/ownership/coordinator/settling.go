package coordinator

import "time"

const (
	// settleTimes bounds, as a multiple of Config.Settle, how long members that come one after
	// the other delay the first claim.
	settleTimes = 6
	// returnGrace is how long, after silence of the store, previous holders of slots are
	// waited for. It exceeds the time of one attempt to reach the store plus the longest pause
	// after it.
	returnGrace = 8 * time.Second
)

// settling is the time until which the Core claims only slots that it holds, so that others
// have time to come, or to come back.
type settling struct {
	until time.Time
	// latest is until when further members may extend it.
	latest   time.Time
	lastNews time.Time // when there was news of any kind
}

// recordNews records news of the store. If none came for so long that leases may have ended
// just for that, others get time to come back and claim the slots that they hold.
func (s *settling) recordNews(now time.Time, ttl time.Duration) {
	// A lease is renewed after each third of its lifetime.
	if !s.lastNews.IsZero() && now.Sub(s.lastNews) > ttl*2/3 {
		s.until = now.Add(returnGrace)
	}
	if now.After(s.lastNews) {
		s.lastNews = now
	}
}

// start waits for further members for the first time.
func (s *settling) start(now time.Time, settle time.Duration) {
	s.until, s.latest = now.Add(settle), now.Add(settleTimes*settle)
}

// extend prolongs the wait because a member has come.
func (s *settling) extend(now time.Time, settle time.Duration) {
	if settled := now.Add(settle); now.Before(s.until) && settled.After(s.until) && !settled.After(s.latest) {
		s.until = settled
	}
}

// wakeup is when the Core has something to decide.
type wakeup struct {
	// changed says that it has now, and wake when it will have at the latest.
	changed bool
	wake    time.Time
}

// Wake is when to call Next again even without news; zero for never.
func (w *wakeup) Wake() time.Time { return w.wake }

// pending reports whether the Core has something to decide now.
func (w *wakeup) pending(now time.Time) bool {
	return w.changed || !w.wake.IsZero() && !now.Before(w.wake)
}

// wakeBy makes Wake no later than a time.
func (w *wakeup) wakeBy(t time.Time) {
	if w.wake.IsZero() || t.Before(w.wake) {
		w.wake = t
	}
}
