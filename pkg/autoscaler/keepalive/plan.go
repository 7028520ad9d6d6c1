package keepalive

import "time"

// Windows say when the next call of an idle function is likely.
type Windows struct {
	// Prewarm is how long after the last call it is unlikely. An instance is
	// there again when it is over.
	Prewarm time.Duration
	// KeepAlive is how long it is likely from then on. The instance is kept
	// for that time.
	KeepAlive time.Duration
}

// worthwhile is an absence of an instance that saves more than a start costs.
const worthwhile = 2 * time.Minute

// Plan is what to do about the last instance of an idle function.
type Plan struct {
	// Keep says that the last instance stays. If it does not, there is no use
	// for any other one either: all may leave.
	Keep bool
	// Floor is how many instances there are to be at least: 1 when the next call
	// is awaited by an instance that was started for it, or else 0.
	Floor int
	// Change is when the plan will be another one, if the function is idle
	// until then. It is zero if it will not.
	Change time.Time
}

// Plan is what to do at now for a function that has been idle since then, and whose
// instances take that long to start; pass the time between two ticks if they take
// less, and 0 if it is not known. An instance leaves to be started again only if
// it is away for longer than worthwhile, and for longer than it takes to start.
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
