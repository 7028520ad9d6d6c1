package colocate

import (
	"fmt"
	"time"
)

// JobID names a batch job of the node. Its user chooses it.
type JobID uint64

// Length is how long a job takes beside others. Only the layout Blocks asks.
type Length int

// Lengths, each with a queue of its own.
const (
	Short Length = iota
	Medium
	Long
)

// Cores are the cores from First on, N of them.
type Cores struct{ First, N int }

// String is the list of the cores as cpuset files have it.
func (c Cores) String() string {
	switch c.N {
	case 0:
		return ""
	case 1:
		return fmt.Sprint(c.First)
	}
	return fmt.Sprintf("%d-%d", c.First, c.First+c.N-1)
}

// Event is something that happened.
type Event interface{ isEvent() }

type (
	// Arrived says that a batch job may run.
	Arrived struct {
		Job JobID
		// Threads is how many cores it can use, at least 1.
		Threads int
		// Expected is how much processor time it is expected to need; 0 if that is unknown,
		// which goes first.
		Expected time.Duration
		Length   Length
		// Unstoppable says that it must not be frozen, only kept off cores. The layout Blocks freezes it
		// nevertheless.
		Unstoppable bool
	}
	// Ended says that a job is over or gone.
	Ended struct{ Job JobID }
	// Sampled is how much processor time a job has used so far.
	Sampled struct {
		Job   JobID
		Usage time.Duration
	}
	// Looked is what latency-critical work has used and waited so far. Waited is the time in
	// which at least one of its threads could have run and did not. A figure that is smaller
	// than before counts from there: something left.
	Looked struct{ Usage, Waited time.Duration }
	// Stopped says that nobody looks any more, until the next Looked.
	Stopped struct{}
)

func (Arrived) isEvent() {}
func (Ended) isEvent()   {}
func (Sampled) isEvent() {}
func (Looked) isEvent()  {}
func (Stopped) isEvent() {}

// Effect is something to do.
type Effect interface{ isEffect() }

type (
	// Confine lets latency-critical work run on these cores and no others. Only the layout Blocks
	// does that.
	Confine struct{ To Cores }
	// Place lets a job run on these cores and no others. The first one starts it.
	Place struct {
		Job JobID
		On  Cores
	}
	// Freeze stops a job where it is.
	Freeze struct{ Job JobID }
	// Thaw lets a job go on.
	Thaw struct{ Job JobID }
)

func (Confine) isEffect() {}
func (Place) isEffect()   {}
func (Freeze) isEffect()  {}
func (Thaw) isEffect()    {}
