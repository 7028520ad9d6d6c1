package floor

import "time"

// Windows say when the next call of an idle function is likely.
type Windows struct {
	// Prewarm is the time after the last call in which the next one is unlikely. An
	// instance is ready again at its end.
	Prewarm time.Duration
	// KeepAlive is the time from then on in which the next call is likely. The
	// instance is kept that long.
	KeepAlive time.Duration
}

// worthwhile is the shortest absence of an instance that saves more than a start costs.
const worthwhile = 2 * time.Minute

// Plan says what to do with the last instance of an idle function.
type Plan struct {
	// Keep says that the last instance stays. If not, all may leave.
	Keep bool
	// Floor is the minimum of instances: 1 while an instance that was started for the
	// next call waits for it, otherwise 0.
	Floor int
	// Change is when the plan changes if the function stays idle; zero for never.
	Change time.Time
}

// Plan returns the plan for a function that has been idle since idleSince. start is how long
// its instances take to start, at least the time between two ticks; 0 if unknown. An instance
// leaves early only if it would be away for longer than worthwhile and for longer than it
// takes to start.
func (w Windows) Plan(idleSince, now time.Time, start time.Duration) Plan {
	order, end := idleSince.Add(w.Prewarm-start), idleSince.Add(w.Prewarm+w.KeepAlive)
	leave := idleSince.Add(Bin)
	if away := order.Sub(leave); away <= max(worthwhile, start) {
		order, leave = end, end
	}
	switch {
	case now.Before(leave):
		return Plan{Keep: true, Change: leave}
	case now.Before(order):
		return Plan{Change: order}
	case now.Before(end):
		return Plan{Keep: true, Floor: 1, Change: end}
	}
	return Plan{}
}
