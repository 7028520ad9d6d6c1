package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// platform is what the model has to know of the way of a call through Windlass and its function's process, and of the
// kernel: how long these take on a machine that does nothing else.
type platform struct {
	// before is from when a call is due until its process computes for it, and after from then until its client has the
	// answer, without the computing.
	before, after time.Duration
	// early is the processor time that counts as a call's, but that its process used after the answer to the one before.
	early time.Duration
	// slice is the kernel's.
	slice time.Duration
}

// platformCalls is how many calls are made at most to measure a platform.
const platformCalls = 200

// measurePlatform makes the calls of a trace in a Windlass that has nothing to compute. Calls that come as in the trace take longer
// than calls of one function that follow each other: cores are asleep, connections were closed, and some are the first of their
// instance. The Windlass is one of its own, so that none learns of functions that need nothing.
func measurePlatform(self, dir string, p policy, t trace) (on platform, err error) {
	err = withServer(self, dir, p, t, func(s *server) error {
		results := s.replay(withoutWork(t))
		if n, first := (outcome{results: results}).failed(); n > 0 {
			return fmt.Errorf("%d calls failed that compute nothing; the first: %w", n, first)
		}
		on = newPlatform(results)
		return nil
	})
	return on, err
}

// withoutWork is the first calls of a trace. Each sleeps about as long as it would compute, so that other instances have the
// calls that come meanwhile. It is bounded, so that none waits for an instance.
func withoutWork(t trace) trace {
	const most = 50 * time.Millisecond
	idle := trace{instances: t.instances}
	for _, c := range t.calls[:min(platformCalls, len(t.calls))] {
		c.sleep, c.cpu = min(most, c.sleep+c.cpu), 0
		idle.calls = append(idle.calls, c)
	}
	return idle
}

// newPlatform is the platform of calls that compute nothing.
func newPlatform(results []result) (p platform) {
	for _, r := range results {
		response := r.began - r.due
		p.before += response - r.read
		p.after += r.turnaround - response - r.exec
		p.early += r.early
	}
	n := time.Duration(len(results))
	return platform{before: p.before / n, after: p.after / n, early: p.early / n, slice: kernelSlice()}
}

// kernelSlice is what the kernel lets a thread compute before another one is next.
func kernelSlice() time.Duration {
	if attr, err := unix.SchedGetAttr(0, 0); err == nil && attr.Runtime > 0 {
		return time.Duration(attr.Runtime)
	}
	return 1500 * time.Microsecond // that of two cores with Linux 6.6 to 6.11, which do not say it
}
