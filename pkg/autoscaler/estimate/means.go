package estimate

import "time"

// Means are the mean times of one function; 0 if unknown.
type Means struct {
	// Execution is the time of a call, and Start the time of an instance from its launch until
	// it can be called.
	Execution, Start time.Duration
}

// Round rounds both.
func (m Means) Round(to time.Duration) Means {
	return Means{Execution: m.Execution.Round(to), Start: m.Start.Round(to)}
}
