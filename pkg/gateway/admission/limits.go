package admission

import (
	"errors"
	"fmt"
	"math"
)

// Limits are what one namespace may use; a field that is 0 limits nothing.
type Limits struct {
	// Rate is how many calls a second are taken in the long run.
	Rate float64
	// Burst is how many are taken at once, after a time without calls; 0 means
	// as many as in one second, and at least one.
	Burst int
	// InFlight is how many calls may wait or run at a time.
	InFlight int
	// Bytes is how much memory the bodies of their requests and answers may take.
	Bytes int64
}

// Validate returns an error in the terms of the policy file.
func (l Limits) Validate() error {
	var errs []error
	if l.Rate < 0 || math.IsNaN(l.Rate) || math.IsInf(l.Rate, 0) {
		errs = append(errs, fmt.Errorf("requestsPerSecond is %v: write calls per second, or 0 for no limit", l.Rate))
	}
	if l.Burst < 0 || (l.Burst > 0 && l.Rate == 0) {
		errs = append(errs, fmt.Errorf("burst is %d: write a number of calls, along with requestsPerSecond", l.Burst))
	}
	if l.InFlight < 0 {
		errs = append(errs, fmt.Errorf("maxInFlight is %d: write a number of calls, or 0 for no limit", l.InFlight))
	}
	if l.Bytes < 0 {
		errs = append(errs, fmt.Errorf("bodyMemory is %d: write a number of bytes, or 0 for no limit", l.Bytes))
	}
	return errors.Join(errs...)
}

// Share is the part of one of several gateways that get the same number of calls. It is
// rounded up, so that every gateway admits calls.
func (l Limits) Share(gateways int) Limits {
	n := max(1, gateways)
	return Limits{
		Rate:     l.Rate / float64(n),
		Burst:    (l.burst() + n - 1) / n,
		InFlight: (l.InFlight + n - 1) / n,
		Bytes:    (l.Bytes + int64(n) - 1) / int64(n),
	}
}

// burst is Burst with its default.
func (l Limits) burst() int {
	if l.Rate > 0 && l.Burst == 0 {
		return int(math.Ceil(min(l.Rate, math.MaxInt32)))
	}
	return l.Burst
}

// Capacity is what a gateway holds at a time.
type Capacity struct {
	Calls int
	// Bytes of bodies.
	Bytes int64
}
