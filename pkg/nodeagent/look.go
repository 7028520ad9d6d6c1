package nodeagent

import (
	"time"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

var still = &nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Still{Still: &nodewire.Still{}}}

// look samples what is to be sampled now, and sets when to look again if somebody is there.
func (a *Agent) look(now time.Duration) {
	alone := len(a.state.sessions) == 0
	if !alone {
		a.sampleAll(now)
		_, most := a.state.pause(a.config)
		a.state.looks.lookAfter(now, most)
	}
	a.state.looks.rests, a.state.looks.lookedAt = alone, now
	a.state.life.sign(now, alone)
}

// lookIfDue looks if that is nearly due. A message has woken the node agent up, and to wake up once more costs more
// than the look.
func (a *Agent) lookIfDue(now time.Duration) {
	least, most := a.state.pause(a.config)
	looks := &a.state.looks
	switch next := looks.lookedAt + most; {
	case now-looks.lookedAt >= least:
		a.look(now)
	case next < looks.dueAt: // the message was of a call that has to wait
		looks.lookAfter(now, next-now)
	}
}

func (a *Agent) sampleAll(now time.Duration) {
	slack := min(a.config.SampleEvery, a.config.Mode.Every) / 2 // a timer is not exact
	if now-a.state.lookedAtMode >= a.config.Mode.Every-slack {
		a.state.lookedAtMode = now
		a.lookAtMode(now)
	}
	a.sample(now)
	if now-a.state.lookedAtLow >= a.config.StillEvery-slack {
		a.state.lookedAtLow = now
		a.lookAtUnasked(now)
		a.lookAtLow(now)
		a.metrics.show(a.state.core)
	} else {
		a.endBreaths(now)
	}
	a.remindWaiting(now, slack)
	if c := &a.state.coLocation; c.core != nil && now-c.at >= coLocateEvery-slack {
		c.lookAtClaims(now, a.state.sessions)
	}
}

// lookAtMode compares how many threads want to run with the cores. A call that waits for its
// ticket wants to, though its thread sleeps: otherwise a node on which everything waits in order
// would seem calm.
func (a *Agent) lookAtMode(now time.Duration) {
	wanting := a.state.core.Counts().Waiting
	if wanting <= a.config.Calls.Cores {
		wanting = addRunnable(a, wanting)
	}
	if !a.state.mode.observe(now, wanting > a.config.Calls.Cores && wantedByOthers(a, now)) {
		return
	}
	busy := a.state.mode.busy
	a.state.critical.observe(now, a.state.sessions, a.state.classes) // what they used on a calm node does not count
	a.metrics.showBusy(busy)
	a.applyEvent(now, callorder.ModeChanged{Busy: busy})
	for _, s := range a.state.sessions {
		s.setMode(busy, busy)
	}
}

// addRunnable adds the threads that want to run to the calls that wait. Where their number cannot be read, nobody wants
// the cores.
func addRunnable(a *Agent, waiting int) int {
	runnable, err := a.deps.Runnable()
	if err != nil && !a.state.loadFailed {
		a.deps.Log.Warn("the load of the node cannot be read; it counts as calm unless more calls wait than it has cores", "err", err)
	}
	a.state.loadFailed = err != nil
	if err != nil {
		return 0
	}
	return waiting + runnable
}

// wantedByOthers reports whether more than the threads of batch instances want the cores. They want
// them at all times, and nobody has to wait for that.
func wantedByOthers(a *Agent, now time.Duration) bool {
	if a.state.core.Counts().Waiting > 0 {
		return true
	}
	got, known := a.state.batch.recent(now, 2*a.config.Mode.CalmEvery, a.state.sessions, a.state.classes)
	return !known || full(got, a.config.Breath.Share, a.config.Calls.Cores, a.state.coLocation.allowed(a.config.Calls.Cores))
}

// sample tells the core how much those have used that it watches. It knows that of one whose message has made this look, and
// for a call that begins at this moment a sample would say that it does not compute.
func (a *Agent) sample(now time.Duration) {
	a.state.watched = a.state.core.AppendDue(a.state.watched[:0])
	for _, id := range a.state.watched {
		if s := a.state.sessions[id]; s != nil && s.lookedAt != now && s.look(now) {
			a.applyEvent(now, callorder.Sampled{Instance: id, Usage: s.usage})
		}
	}
}

// looksAtUnasked is at how many instances lookAtUnasked looks at most, so that what it costs does not
// grow with the instances of the node.
const looksAtUnasked = 32

// lookAtUnasked tells the core how much some have used that run no call with a ticket.
func (a *Agent) lookAtUnasked(now time.Duration) {
	a.state.watched = a.state.core.AppendUnasked(a.state.watched[:0], looksAtUnasked)
	for _, id := range a.state.watched {
		if s := a.state.sessions[id]; s != nil && s.look(now) {
			a.applyEvent(now, callorder.Sampled{Instance: id, Usage: s.usage})
		}
	}
}

// endBreaths ends the breaths that are over.
func (a *Agent) endBreaths(now time.Duration) {
	for id, i := range a.state.breaths.low {
		if i.breathing {
			a.lookAtBreath(now, id)
		}
	}
}

func (a *Agent) lookAtBreath(now time.Duration, id callorder.InstanceID) {
	s := a.state.sessions[id]
	if s == nil {
		return
	}
	s.look(now)
	if a.state.breaths.observe(now, id, s.usage) {
		a.writeBand(s)
	}
}

// keepLowEvery is how often instances are put into the low band again that should be there.
const keepLowEvery = time.Second

// lookAtLow lets those breathe that starve in the low band, and repeats moves that failed. It tells the core what calls
// have used there, so that it counts when they compute and not all at once at their ends. What batch instances use counts for nobody.
func (a *Agent) lookAtLow(now time.Duration) {
	for id := range a.state.breaths.low {
		a.lookAtBreath(now, id)
		if s := a.state.sessions[id]; s != nil && s.class == callorder.Standard {
			a.applyEvent(now, callorder.Sampled{Instance: id, Usage: s.usage})
		}
	}
	// On a calm node something is left for everybody, and who uses nothing of it does not starve.
	if a.state.mode.busy || a.state.loadFailed {
		for _, id := range a.state.breaths.letBreathe(now) {
			a.metrics.breaths.Inc()
			a.writeBand(a.state.sessions[id])
		}
	}
	if a.state.mode.busy {
		a.applyEvent(now, callorder.Occupied{Cores: occupiedCores(a.state.critical.observe(now, a.state.sessions, a.state.classes))})
	}
	keep := now-a.state.keptLow >= keepLowEvery
	if keep {
		a.state.keptLow = now
	}
	low := 0
	for _, s := range a.state.sessions {
		if keep {
			a.keepLow(s)
		}
		a.writeBand(s)
		a.metrics.countBatch(s)
		if s.low && !s.bandless {
			low++
		}
	}
	a.metrics.low.Set(float64(low))
	a.metrics.showInstances(a.state.sessions)
}

// remindBy says that the agent of a call that waits is to hear of it then at the latest.
func (t *state) remindBy(due time.Duration) {
	if t.remindAt == 0 || due < t.remindAt {
		t.remindAt = due
	}
}

// remindWaiting tells the agents of calls that wait that they are not forgotten, each in StillEvery at the latest. Most
// calls begin before they are due, and hear nothing.
func (a *Agent) remindWaiting(now, slack time.Duration) {
	if a.state.remindAt == 0 || now < a.state.remindAt-slack {
		return
	}
	a.state.remindAt = 0
	a.state.watched = a.state.core.AppendWaiting(a.state.watched[:0])
	for _, id := range a.state.watched {
		s := a.state.sessions[id]
		if s == nil {
			continue
		}
		if now-s.sign >= a.config.StillEvery-slack {
			s.reply(still)
			s.sign = now
		}
		a.state.remindBy(s.sign + a.config.StillEvery)
	}
}
