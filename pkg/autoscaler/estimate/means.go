package estimate

import "time"

// Means are what is learnt of one function; 0 is what is not known.
type Means struct {
	// Execution is how long a call runs, and Start how long an instance takes
	// from its order until it can be called.
	Execution, Start time.Duration
}

// Round rounds both.
func (m Means) Round(to time.Duration) Means {
	return Means{Execution: m.Execution.Round(to), Start: m.Start.Round(to)}
}
