package verdict

import (
	"math"
	"slices"
	"time"
)

// Quantile is the smallest of the values that a share q of them, 0 to 1, does not
// exceed; 0 if there are none.
func Quantile(values []time.Duration, q float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)))) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// Stall is how long a fault kept new calls waiting: the longest that a call took
// that began between two moments, of those that ended well.
func Stall(calls []Call, from, to int64) time.Duration {
	var longest time.Duration
	for i := range calls {
		if c := &calls[i]; c.Began >= from && c.Began < to && c.Succeeded() {
			longest = max(longest, c.Latency())
		}
	}
	return longest
}

// FirstSuccess is how long after a moment the first call succeeded that began after
// it; the whole time if none did.
func FirstSuccess(calls []Call, from, to int64) time.Duration {
	first := to
	for i := range calls {
		if c := &calls[i]; c.Began >= from && c.Began < to && c.Succeeded() {
			first = min(first, c.Ended)
		}
	}
	return time.Duration(first - from)
}

// Gap is the longest time between two moments without any success.
func Gap(calls []Call, from, to int64) time.Duration {
	ends := []int64{from, to}
	for i := range calls {
		if c := &calls[i]; c.Succeeded() && c.Ended > from && c.Ended < to {
			ends = append(ends, c.Ended)
		}
	}
	slices.Sort(ends)
	var longest int64
	for i := 1; i < len(ends); i++ {
		longest = max(longest, ends[i]-ends[i-1])
	}
	return time.Duration(longest)
}
