package node

import (
	"math"
	"slices"
	"time"
)

// Hybrid is the scheduler of Zhao et al.: some cores run calls of one queue up to a limit, and the others
// share those that went beyond it. Its calls only compute.
type Hybrid struct {
	// FIFO is how many cores belong to the queue at first, at least 1 and fewer than there are.
	FIFO int
	// Limit is the longest that a call computes on them. With a Percentile it holds until 100
	// calls have ended, and from then on the percentile of the times that the last 100 computed.
	Limit      time.Duration
	Percentile float64
	// Rightsize moves a core from the group that uses less of its cores to the other one, if
	// their use over a window differs by more than Threshold. 0 is never.
	Rightsize time.Duration
	Threshold float64
	// Observe is called after each window with the use of both groups, and how many cores
	// the queue has; it may be nil.
	Observe func(now time.Duration, fifo, cfs float64, cores int)
}

// limitWindow is how many of the last calls the limit is a percentile of.
const limitWindow = 100

type hybrid struct {
	Hybrid
	w     *world
	queue []*job
	fast  *group
	// free are idle cores of the queue, and running the calls on the others.
	free    int
	running []*job
	// slow are the cores that share; each has its own calls. last is the one that got the last call.
	slow   []*group
	last   int
	limit  float64
	recent []float64
	// of the window: how long cores of both groups were busy
	since              float64
	busyFast, busySlow float64
}

func (h Hybrid) start(w *world, cores int) (decisions, error) {
	s := &hybrid{Hybrid: h, w: w, fast: newGroup(float64(h.FIFO), 1), free: h.FIFO, limit: h.Limit.Seconds()}
	w.groups = append(w.groups, s.fast)
	for range cores - h.FIFO {
		s.grow()
	}
	if h.Rightsize > 0 {
		s.account(0)
		w.after(h.Rightsize.Seconds(), s.rightsize)
	}
	return s, nil
}

func (h *hybrid) grow() {
	g := newGroup(1, 1)
	h.slow = append(h.slow, g)
	h.w.groups = append(h.w.groups, g)
}

func (h *hybrid) add(j *job) {
	h.queue = append(h.queue, j)
	h.fill()
}

func (h *hybrid) fill() {
	for h.free > 0 && len(h.queue) > 0 {
		j := h.queue[0]
		h.queue = h.queue[1:]
		h.free--
		h.running = append(h.running, j)
		if j.launched < 0 {
			h.w.launch(j, h.fast.bands[0])
		} else {
			h.w.move(j, h.fast.bands[0])
		}
		h.limitLater(j)
	}
}

// limitLater looks at a call when it reaches the limit as it is now.
func (h *hybrid) limitLater(j *job) {
	if math.IsInf(h.limit, 1) {
		return
	}
	h.w.after(max(0, h.limit-j.computed()), func() { h.judge(j) })
}

// judge ends a call's time on a fast core if it has reached the limit.
func (h *hybrid) judge(j *job) {
	at := slices.Index(h.running, j)
	switch {
	case at < 0 || j.ending():
	case j.computed() < h.limit-1e-9:
		h.limitLater(j)
	default:
		h.running = slices.Delete(h.running, at, at+1)
		h.free++
		h.deal(j)
		h.fill()
	}
}

// deal gives the next of the slow cores a call.
func (h *hybrid) deal(j *job) {
	h.last = (h.last + 1) % len(h.slow)
	h.w.move(j, h.slow[h.last].bands[0])
}

func (h *hybrid) stop(j *job) {
	if at := slices.Index(h.running, j); at >= 0 {
		h.running = slices.Delete(h.running, at, at+1)
		h.free++
	}
	if h.Percentile > 0 {
		h.adapt(j.used)
	}
	h.fill()
}

// adapt changes the limit after a call that computed for so long.
func (h *hybrid) adapt(used float64) {
	h.recent = append(h.recent, used)
	if len(h.recent) < limitWindow {
		return
	}
	h.recent = h.recent[len(h.recent)-limitWindow:]
	sorted := slices.Sorted(slices.Values(h.recent))
	h.limit = sorted[max(0, int(h.Percentile*limitWindow)-1)]
	for _, j := range slices.Clone(h.running) {
		h.judge(j)
	}
}

// account samples the use of the cores, 20 times in a window.
func (h *hybrid) account(step float64) {
	h.busyFast += step * float64(len(h.running))
	for _, g := range h.slow {
		if len(g.bands[0].jobs.items) > 0 {
			h.busySlow += step
		}
	}
	every := h.Rightsize.Seconds() / 20
	h.w.after(every, func() { h.account(every) })
}

func (h *hybrid) rightsize() {
	window := h.w.now - h.since
	fast := h.busyFast / window / h.fast.cores
	slow := h.busySlow / window / float64(len(h.slow))
	h.since, h.busyFast, h.busySlow = h.w.now, 0, 0
	switch {
	case fast > slow+h.Threshold && len(h.slow) > 1:
		h.slowToFast()
	case slow > fast+h.Threshold && h.fast.cores > 1:
		h.fastToSlow()
	}
	if h.Observe != nil {
		h.Observe(ofSeconds(h.w.now), fast, slow, int(h.fast.cores))
	}
	h.w.after(h.Rightsize.Seconds(), h.rightsize)
}

// slowToFast spreads the calls of a slow core over the others.
func (h *hybrid) slowToFast() {
	n := len(h.slow) - 1
	g := h.slow[n]
	h.slow = h.slow[:n]
	h.w.groups = slices.DeleteFunc(h.w.groups, func(other *group) bool { return other == g })
	for _, j := range slices.Clone(g.bands[0].jobs.items) {
		h.deal(j)
	}
	h.fast.cores++
	h.free++
	h.fill()
}

// fastToSlow moves a fast core with its call, and balances the slow cores' calls.
func (h *hybrid) fastToSlow() {
	h.fast.cores--
	h.grow()
	added := h.slow[len(h.slow)-1].bands[0]
	if h.free > 0 {
		h.free--
	} else {
		j := h.running[0]
		h.running = h.running[1:]
		h.w.move(j, added)
	}
	for {
		most := slices.MaxFunc(h.slow, func(a, b *group) int {
			return len(a.bands[0].jobs.items) - len(b.bands[0].jobs.items)
		}).bands[0]
		if len(most.jobs.items) < len(added.jobs.items)+2 {
			return
		}
		h.w.move(most.jobs.items[len(most.jobs.items)-1], added)
	}
}
