package cluster

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Histogram counts durations, exact to a microsecond and to a thousandth; those of one
// function among many to a hundredth, to save memory.
type Histogram struct{ hdr *hdrhistogram.Histogram }

// longest is the longest duration that a Histogram tells from others.
const longest = 30 * 24 * time.Hour

func newHistogram(digits int) Histogram {
	return Histogram{hdrhistogram.New(int64(time.Microsecond), int64(longest), digits)}
}

func (h Histogram) record(d time.Duration) {
	// It fails only beyond its range.
	_ = h.hdr.RecordValue(int64(min(max(0, d), longest)))
}

// Count is how many durations were counted.
func (h Histogram) Count() int { return int(h.hdr.TotalCount()) }

// Mean is the mean; 0 if it is empty.
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

// Ratios counts ratios, as a Histogram does durations.
type Ratios struct{ histogram Histogram }

// one is the duration that stands for the ratio 1.
const one = time.Millisecond

func (r Ratios) recordRatio(ratio float64) { r.histogram.record(time.Duration(ratio * float64(one))) }

// Count is how many ratios were counted.
func (r Ratios) Count() int { return r.histogram.Count() }

// Mean is the mean; 0 if it is empty.
func (r Ratios) Mean() float64 { return float64(r.histogram.Mean()) / float64(one) }

// Quantile is what the share q of them, 0 to 1, does not exceed.
func (r Ratios) Quantile(q float64) float64 { return float64(r.histogram.Quantile(q)) / float64(one) }

// Merge adds what another one has counted.
func (r Ratios) Merge(other Ratios) { r.histogram.Merge(other.histogram) }
