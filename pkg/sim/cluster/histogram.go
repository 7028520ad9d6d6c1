package cluster

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts durations. What it tells of them is right to a thousandth, and to
// a microsecond.
type Histogram struct{ hdr *hdrhistogram.Histogram }

// longest is the longest duration that a Histogram tells from others.
const longest = 30 * 24 * time.Hour

func newHistogram() Histogram {
	return Histogram{hdrhistogram.New(int64(time.Microsecond), int64(longest), 3)}
}

func (h Histogram) record(d time.Duration) {
	// It fails only beyond its range.
	_ = h.hdr.RecordValue(int64(min(max(0, d), longest)))
}

// Count is how many durations were counted.
func (h Histogram) Count() int { return int(h.hdr.TotalCount()) }

// Mean is their mean; 0 if there are none.
func (h Histogram) Mean() time.Duration { return time.Duration(h.hdr.Mean()) }

// Max is the longest.
func (h Histogram) Max() time.Duration { return time.Duration(h.hdr.Max()) }

// StdDev is their standard deviation.
func (h Histogram) StdDev() time.Duration { return time.Duration(h.hdr.StdDev()) }

// Quantile is what the share q of them, 0 to 1, does not exceed.
func (h Histogram) Quantile(q float64) time.Duration {
	return time.Duration(h.hdr.ValueAtPercentile(100 * q)).Truncate(time.Microsecond)
}

// Merge adds what another one has counted.
func (h Histogram) Merge(other Histogram) { h.hdr.Merge(other.hdr) }
