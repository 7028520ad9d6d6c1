package monitor

import (
	"cmp"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
)

// histogram is what a process has counted so far. It has native buckets, or else
// classic ones, and is empty as zero value.
type histogram struct {
	count float64

	native bool
	// schema says how fine the native buckets are: bucket i ends at
	// 2^(i/2^schema). zero counts what is at most threshold.
	schema          int32
	zero, threshold float64
	buckets         map[int]float64

	// bounds and cumulative are of classic buckets.
	bounds, cumulative []float64
}

func readHistogram(h *dto.Histogram) histogram {
	out := histogram{count: float64(h.GetSampleCount())}
	if h.Schema != nil {
		out.native, out.schema = true, h.GetSchema()
		out.zero, out.threshold = float64(h.GetZeroCount()), h.GetZeroThreshold()
		out.buckets = make(map[int]float64)
		index, count, next := 0, int64(0), 0
		deltas := h.GetPositiveDelta()
		for _, span := range h.GetPositiveSpan() {
			index += int(span.GetOffset())
			for range span.GetLength() {
				if next == len(deltas) {
					return out
				}
				count += deltas[next]
				out.buckets[index] = float64(count)
				next, index = next+1, index+1
			}
		}
		return out
	}
	for _, b := range h.GetBucket() {
		out.bounds = append(out.bounds, b.GetUpperBound())
		out.cumulative = append(out.cumulative, float64(b.GetCumulativeCount()))
	}
	if n := len(out.bounds); n == 0 || !math.IsInf(out.bounds[n-1], 1) {
		out.bounds = append(out.bounds, math.Inf(1))
		out.cumulative = append(out.cumulative, out.count)
	}
	return out
}

// coarser is a native histogram with larger buckets. A process makes its own coarser
// when it has too many.
func (h histogram) coarser(schema int32) histogram {
	steps := h.schema - schema
	if !h.native || steps <= 0 {
		return h
	}
	merged := make(map[int]float64, len(h.buckets))
	for i, n := range h.buckets {
		merged[(i-1)>>steps+1] += n
	}
	h.schema, h.buckets = schema, merged
	return h
}

// since is what was counted after before.
func (h histogram) since(before histogram) spread {
	if before.native != h.native || h.count < before.count || !h.native && !slices.Equal(h.bounds, before.bounds) {
		before = histogram{native: h.native, schema: h.schema}
	}
	if h.native {
		return h.nativeSince(before)
	}
	var out spread
	last, lower := 0.0, 0.0
	for i, bound := range h.bounds {
		upTo := h.cumulative[i]
		if i < len(before.cumulative) {
			upTo -= before.cumulative[i]
		}
		out = out.with(bucket{lower: lower, upper: bound, count: upTo - last})
		last, lower = upTo, bound
	}
	return out
}

func (h histogram) nativeSince(before histogram) spread {
	schema := min(h.schema, before.schema)
	h, before = h.coarser(schema), before.coarser(schema)
	out := spread{}.with(bucket{upper: h.threshold, count: h.zero - before.zero})
	width := math.Exp2(float64(-schema))
	for i, n := range h.buckets {
		out = out.with(bucket{
			lower: math.Exp2(float64(i-1) * width), upper: math.Exp2(float64(i) * width),
			count: n - before.buckets[i], geometric: true,
		})
	}
	slices.SortFunc(out, compareBuckets)
	return out
}

// spread counts values by bucket, in the order of the buckets.
type spread []bucket

// bucket counts the values above lower, up to upper.
type bucket struct {
	lower, upper, count float64
	// geometric says that values are rather at equal ratios than at equal
	// distances.
	geometric bool
}

func compareBuckets(a, b bucket) int {
	return cmp.Or(cmp.Compare(a.upper, b.upper), cmp.Compare(a.lower, b.lower))
}

func (s spread) with(b bucket) spread {
	if b.count <= 0 {
		return s
	}
	return append(s, b)
}

// merge sorts the buckets of several spreads, and adds up equal ones.
func merge(several spread) spread {
	all := slices.Clone(several)
	slices.SortFunc(all, compareBuckets)
	out := all[:0]
	for _, b := range all {
		if n := len(out); n > 0 && compareBuckets(out[n-1], b) == 0 {
			out[n-1].count += b.count
			continue
		}
		out = append(out, b)
	}
	return out
}

// quantile is the value that a share q of all values does not exceed; 0 if there are
// none. Of those beyond the last bound, the bound is all that is known.
func (s spread) quantile(q float64) float64 {
	total := 0.0
	for _, b := range s {
		total += b.count
	}
	rank := q * total
	for i, b := range s {
		if rank -= b.count; rank > 0 && i < len(s)-1 {
			continue
		}
		if math.IsInf(b.upper, 1) {
			return b.lower
		}
		share := min(1, (rank+b.count)/b.count)
		if b.geometric && b.lower > 0 {
			return b.lower * math.Pow(b.upper/b.lower, share)
		}
		return b.lower + (b.upper-b.lower)*share
	}
	return 0
}
