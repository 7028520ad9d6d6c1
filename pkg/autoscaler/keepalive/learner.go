package keepalive

import (
	"math"
	"time"
)

const (
	// Bin is the width of a bin of the histogram, and the shortest idle time
	// that counts.
	Bin = time.Minute
	// Range is the longest idle time that the histogram tells from longer ones.
	Range = 4 * time.Hour

	bins = int(Range / Bin)

	// enough idle times must be within Range before anything is made of them,
	// and as many as outside at least.
	enough = 10
	// most of them are remembered: then all count for half, so that the recent
	// ones weigh more.
	most = 1024
	// significant is the coefficient of variation of the bins' counts above
	// which they show a pattern: it is 0 if all idle times are equally frequent,
	// and 15 if all are equal.
	significant = 2

	head, tail = 0.01, 0.99
	margin     = 0.1
)

// Learner learns from the idle times of a function: from the end of its last
// call, when none ran or waited any more, to the next arrival. Its zero value
// has learnt nothing, and takes next to no memory until it has something to
// count; then half a kilobyte.
type Learner struct {
	counts *[bins]uint16
	// within is the sum of counts, squares that of their squares, and beyond
	// how many idle times exceeded Range.
	within, squares, beyond int
}

// Idle takes an idle time that has just ended with a call. It takes constant
// time, but for each 512th.
func (l *Learner) Idle(d time.Duration) {
	switch {
	case d < Bin:
		return
	case d >= Range:
		l.beyond++
	default:
		if l.counts == nil {
			l.counts = new([bins]uint16)
		}
		count := &l.counts[d/Bin]
		l.squares += 2*int(*count) + 1
		*count++
		l.within++
	}
	if l.within+l.beyond >= most {
		l.fade()
	}
}

// fade lets everything count for half, and what counted once for nothing.
func (l *Learner) fade() {
	l.within, l.squares, l.beyond = 0, 0, l.beyond/2
	if l.counts == nil {
		return
	}
	for i := range l.counts {
		l.counts[i] /= 2
		count := int(l.counts[i])
		l.within += count
		l.squares += count * count
	}
}

// Windows are what the idle times teach. The last instance is kept until
// keepLast after the last call at least: idle times beyond the pattern are rare,
// so that this costs little, and without it a pattern would make the calls that
// end them wait for a start. It is not ok if the idle times teach nothing: there were
// too few, too many were beyond Range, or there is no pattern in them.
func (l *Learner) Windows(keepLast time.Duration) (w Windows, ok bool) {
	if l.within < enough || l.within < l.beyond || !l.patterned() {
		return Windows{}, false
	}
	first := time.Duration(l.percentile(head)) * Bin
	last := time.Duration(l.percentile(tail)+1) * Bin
	prewarm := time.Duration(float64(first) * (1 - margin))
	end := max(time.Duration(float64(last)*(1+margin)), keepLast)
	return Windows{Prewarm: prewarm, KeepAlive: end - prewarm}, true
}

// patterned tells whether the coefficient of variation of the bins' counts is
// significant: whether squares/bins - mean*mean exceeds its square times mean*mean.
func (l *Learner) patterned() bool {
	return l.squares*bins > (1+significant*significant)*l.within*l.within
}

// percentile is the bin of the idle time that this part of all within Range
// does not exceed.
func (l *Learner) percentile(part float64) int {
	rank := int(math.Ceil(part * float64(l.within)))
	for i, count := range l.counts {
		if rank -= int(count); rank <= 0 {
			return i
		}
	}
	return bins - 1
}
