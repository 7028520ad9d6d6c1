package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// nodeAgent is what an instance meets of its node agent: one that grants cores late, stands
// still, forgets, answers twice, or dies and comes back. Nothing that it does may cost a call.
type nodeAgent struct {
	// busy says that calls have to ask, and asks is the one that waits.
	busy bool
	asks core.Attempt
	// asked is since when it waits, in the world's time.
	asked time.Duration
	// ticket is the last one that the instance was handed.
	ticket invocation.ID
}

// stillEvery is how often a node agent says that a call waits.
const stillEvery = 100 * time.Millisecond

// meetNodeAgent connects some instances to a node agent, which changes its mode now and then.
func (a *agent) meetNodeAgent() {
	w := a.world
	if !w.chance(0.5) {
		return
	}
	var change func()
	change = func() {
		switch {
		case w.faulty() && w.chance(0.2):
			a.nodeAgent.busy, a.nodeAgent.asks = false, 0
			a.step(core.NodeLost{})
		case w.faulty() && w.chance(0.2):
			a.step(core.NodeLow{Low: w.chance(0.5)})
		default:
			a.nodeAgent.busy = w.chance(0.6)
			a.step(core.NodeMode{Busy: a.nodeAgent.busy, Ask: a.nodeAgent.busy})
		}
		a.after(w.between(100*time.Millisecond, 4*time.Second), change)
	}
	a.after(w.between(0, time.Second), change)
}

// coreWait is how long a call waits for a core, of a time below a second. Without faults
// it is less than any call may wait, also by a clock that goes twice as fast. While there are faults, one in
// twenty waits for up to six seconds, which is longer than schedulers take for a claim, and than most calls
// may take.
func (w *World) coreWait(drawn time.Duration) time.Duration {
	if !w.faulty() {
		return drawn / 3
	}
	return drawn + 100*max(0, drawn-950*time.Millisecond)
}

// askCore lets a node agent answer an ask, or not.
func (a *agent) askCore(n core.Attempt) {
	w := a.world
	a.nodeAgent.asks, a.nodeAgent.asked = n, w.now
	if a.attemptOf(n) == nil {
		w.truth.byID[a.nodeAgent.ticket].wantedCore = w.now + time.Second
	}
	if w.faulty() && w.chance(0.1) { // it stands still
		return
	}
	waits := w.coreWait(w.between(0, time.Second))
	grants := w.now + waits
	if a.attemptOf(n) == nil {
		w.truth.byID[a.nodeAgent.ticket].wantedCore = w.now + max(waits, time.Second)
	}
	var still func()
	still = func() {
		switch {
		case a.nodeAgent.asks != n:
		case w.now < grants:
			a.step(core.NodeStill{})
			a.after(min(stillEvery, grants-w.now), still)
		default:
			a.step(core.NodeGranted{Attempt: n})
			if w.chance(0.1) {
				a.step(core.NodeGranted{Attempt: n})
			}
		}
	}
	a.after(min(stillEvery, grants-w.now), still)
}
