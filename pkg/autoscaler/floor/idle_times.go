package floor

import (
	"math"
	"time"
)

const (
	// Bin is the width of a bin, and the shortest idle time that counts.
	Bin = time.Minute
	// Range is where the bins end. Longer idle times are counted together.
	Range = 4 * time.Hour

	bins = int(Range / Bin)

	// enough is the minimum number of idle times within Range before they decide anything.
	// They must also be at least as many as those beyond it.
	enough = 10
	// most is the number at which all counts are halved, so that recent idle times
	// weigh more.
	most = 1024
	// significant is the coefficient of variation of the bins' counts that shows a
	// pattern: 0 if all bins are equally frequent, 15 if all idle times are equal.
	significant = 2

	head, tail = 0.01, 0.99
	margin     = 0.1
)

// Histogram counts the idle times of a function, each from the end of its last call, when no
// call runs or waits, to the next arrival. The zero value is empty and has no memory for bins;
// the first count allocates half a kilobyte.
type Histogram struct {
	counts *[bins]uint16
	// within is the sum of counts, squares the sum of their squares, and beyond the
	// number of idle times that exceeded Range.
	within, squares, beyond int
}

// Add counts an idle time that a call ended. It takes constant time, except each 512th.
func (h *Histogram) Add(d time.Duration) {
	switch {
	case d < Bin:
		return
	case d >= Range:
		h.beyond++
	default:
		if h.counts == nil {
			h.counts = new([bins]uint16)
		}
		count := &h.counts[d/Bin]
		h.squares += 2*int(*count) + 1
		*count++
		h.within++
	}
	if h.within+h.beyond >= most {
		h.fade()
	}
}

// fade halves every count, rounding down.
func (h *Histogram) fade() {
	h.within, h.squares, h.beyond = 0, 0, h.beyond/2
	if h.counts == nil {
		return
	}
	for i := range h.counts {
		h.counts[i] /= 2
		count := int(h.counts[i])
		h.within += count
		h.squares += count * count
	}
}

// Windows returns the windows that the idle times show. The last instance stays at least until
// keepLast after the last call: idle times beyond the pattern are rare, so this costs little,
// and without it the calls that end them would wait for a start. ok is false without a
// pattern, with too few idle times, or with too many beyond Range.
func (h *Histogram) Windows(keepLast time.Duration) (w Windows, ok bool) {
	if h.within < enough || h.within < h.beyond || !h.patterned() {
		return Windows{}, false
	}
	first := time.Duration(h.percentile(head)) * Bin
	last := time.Duration(h.percentile(tail)+1) * Bin
	prewarm := time.Duration(float64(first) * (1 - margin))
	end := max(time.Duration(float64(last)*(1+margin)), keepLast)
	return Windows{Prewarm: prewarm, KeepAlive: end - prewarm}, true
}

// patterned reports whether the coefficient of variation of the bins' counts is significant:
// whether squares/bins - mean*mean exceeds its square times mean*mean.
func (h *Histogram) patterned() bool {
	return h.squares*bins > (1+significant*significant)*h.within*h.within
}

// percentile is the bin that this part of all idle times within Range does not exceed.
func (h *Histogram) percentile(part float64) int {
	rank := int(math.Ceil(part * float64(h.within)))
	for i, count := range h.counts {
		if rank -= int(count); rank <= 0 {
			return i
		}
	}
	return bins - 1
}
