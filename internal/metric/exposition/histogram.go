package exposition

import (
	"cmp"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// Histogram has native buckets only: with classic ones, a row would have a series more for
// each bucket. It takes memory for non-empty buckets, at most some 300. Its zero value is
// empty. It is not safe for concurrent use.
type Histogram struct {
	count, zeros uint64
	sum          float64
	// buckets are in the order of their indexes.
	buckets []nativeBucket
}

// nativeBucket counts values above 2^((index-1)/8) and up to 2^(index/8).
type nativeBucket struct {
	index int32
	n     uint64
}

const (
	// nativeSchema has eight buckets between powers of two, so that their bounds are a tenth
	// apart, as those of metric.Histogram are.
	nativeSchema = 3
	perOctave    = 1 << nativeSchema
	// zeroThreshold is how much counts as nothing: 15 µs, if seconds are counted.
	zeroThreshold = 1.0 / (1 << 16)
	// highestIndex is that of all beyond 2^20: 12 days, if seconds are counted.
	highestIndex = 20 * perOctave
	// mostGap is the longest run of empty buckets that is written rather than skipped.
	mostGap = 2
)

// octave are the bounds of the buckets from 1/2 up to 1, without that. Prometheus has the same
// numbers; computed ones differ in the last digit.
var octave = [perOctave]float64{
	0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
	0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
}

// Observe counts a value, which is not negative.
func (h *Histogram) Observe(v float64) { h.ObserveN(v, 1) }

// ObserveN counts a value n times.
func (h *Histogram) ObserveN(v float64, n uint64) {
	h.count += n
	h.sum += v * float64(n)
	if v <= zeroThreshold {
		h.zeros += n
		return
	}
	index := indexOf(v)
	i, there := slices.BinarySearchFunc(h.buckets, index, func(b nativeBucket, index int32) int { return cmp.Compare(b.index, index) })
	if !there {
		h.buckets = slices.Insert(h.buckets, i, nativeBucket{index: index})
	}
	h.buckets[i].n += n
}

func indexOf(v float64) int32 {
	fraction, exponent := math.Frexp(min(v, math.Exp2(highestIndex/perOctave)))
	i, _ := slices.BinarySearch(octave[:], fraction)
	return int32(i + (exponent-1)*perOctave)
}

// Clone is a copy; nil of nil.
func (h *Histogram) Clone() *Histogram {
	if h == nil {
		return nil
	}
	c := *h
	c.buckets = slices.Clone(h.buckets)
	return &c
}

// nativeMessage is a message that histograms are written to, one after the other.
type nativeMessage struct {
	dto.Histogram
	spans []dto.BucketSpan
}

// set makes the message that of a histogram.
func (m *nativeMessage) set(h *Histogram) {
	m.SampleCount, m.SampleSum = &h.count, &h.sum
	m.Schema, m.ZeroThreshold, m.ZeroCount = proto.Int32(nativeSchema), proto.Float64(zeroThreshold), &h.zeros
	m.spans, m.PositiveSpan, m.PositiveDelta = m.spans[:0], m.PositiveSpan[:0], m.PositiveDelta[:0]
	var next int32
	var before int64
	count := func(n int64) {
		*m.spans[len(m.spans)-1].Length++
		m.PositiveDelta = append(m.PositiveDelta, n-before)
		before = n
	}
	for i, b := range h.buckets {
		if gap := b.index - next; i == 0 || gap > mostGap {
			m.spans = append(m.spans, dto.BucketSpan{Offset: &gap, Length: new(uint32)})
			next = b.index
		}
		for ; next < b.index; next++ {
			count(0)
		}
		count(int64(b.n))
		next++
	}
	for i := range m.spans {
		m.PositiveSpan = append(m.PositiveSpan, &m.spans[i])
	}
}
