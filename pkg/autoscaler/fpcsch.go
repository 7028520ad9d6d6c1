package autoscaler

import (
	"math"
	"time"
)

var fpcsch = Algorithm{
	Name:   "FPCSch",
	About:  "the algorithm of the FPCSch paper, Listing 1, which tries to clear the queue within a tenth of a second",
	Decide: FPCSch,
}

// fpcschState is what FPCSch carries from tick to tick.
type fpcschState struct {
	// Tick is the paper's tick: 0 until a ticket was pulled, here or at an earlier owner.
	Tick int
	// Arrived is Qend in the snapshot of the current tick, and Before in
	// that of the tick before.
	Arrived, Before uint64
}

// FPCSch is the paper's Listing 1, lines 18 to 45.
//
// Two lines need interpretation. Line 20 sets the queue's numbers in S[0] to zero, so that
// line 30 would always find an empty queue at tick 0 and line 45 would never create the first
// instance. The text says that "as many containers as requests in the queue are created", so
// FPCSch uses the number that really waits. Line 32 checks only whether an instance is being
// created, where the text says that condition 1 is when there is "no creating (and also
// created) container". FPCSch follows the text; otherwise the tick between an instance's start
// and its first pull would create another one.
//
// One condition is our addition. The paper's scheduler never takes over from another one: as long as
// Qbegin is 0 nothing was pulled, and only the first instance and those for its burst are created. A
// scheduler that takes over counts from 0, and would create nothing for calls that wait behind running
// ones until one of these ends. So a busy instance, too, shows that requests have been pulled.
func FPCSch(s Snapshot, p Params) Decision {
	now := renewSnapshot(s)
	d := Decision{Why: ReasonNoDemand, State: now}
	waiting := s.Waiting()
	total := s.Created + s.Creating // line 29
	shortage := 0                   // line 28

	switch {
	case now.Tick == 0 && total == 0: // lines 31-33, condition 1
		shortage, d.Why = 1, ReasonFirst
	case now.Tick == 0 && s.Creating > 0: // lines 34-35, condition 2
		shortage, d.Why = waiting-s.Creating, ReasonBurst
	case now.Tick > 0 && total < waiting: // line 36
		power := executionsPerTick(s.MeanExecution, p.Tick)   // line 37
		arrivals := int(now.Arrived - now.Before)             // line 38
		d.Required = int(math.Ceil(float64(waiting) / power)) // line 39
		if arrivals < waiting {                               // lines 40-41, condition 3
			shortage, d.Why = d.Required-s.Creating, ReasonCongestion
		} else if float64(arrivals) >= power*float64(total) { // lines 42-43, condition 4
			shortage, d.Why = d.Required-total, ReasonOverload
		}
	}
	d.Create = max(0, min(shortage, waiting)) // lines 44-45
	if d.Create == 0 && d.Why != ReasonNoDemand {
		d.Why = ReasonEnough
	}
	if waiting == 0 {
		d.Why = ReasonNoDemand
	}
	return d
}

// renewSnapshot is lines 18 to 25: the tick advances only when tickets wait or have arrived,
// and stays 0 until the first pull.
func renewSnapshot(s Snapshot) fpcschState {
	m := stateOf[fpcschState](s)
	if s.Departed == 0 && s.Busy == 0 { // lines 19-20
		return fpcschState{}
	}
	if s.Waiting() > 0 || s.Arrived > m.Arrived { // lines 22-23
		m.Tick++
		m.Before = m.Arrived
	}
	m.Arrived = s.Arrived // line 24
	return m
}

// executionsPerTick is line 37. An unknown mean counts as one tick: "a
// container is assumed to execute only a request per tick" (IV-B).
func executionsPerTick(mean, tick time.Duration) float64 {
	if mean <= 0 {
		return 1
	}
	return float64(tick) / float64(mean)
}
