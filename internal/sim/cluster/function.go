package cluster

import (
	"fmt"
	"sort"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// function is a function that was called, or that has instances whether it is or not.
// Others take the room of a pointer.
type function struct {
	index  int
	name   string
	class  *Function
	result *FunctionResult

	// instances are all that exist, nil if there are none; starting are those of them
	// that are under way, the youngest last, and created counts the others.
	instances map[invocation.CID]*instance
	starting  []*instance
	created   int
	sequence  uint64
	// place is where it stands in world.populated.
	place int

	// core is nil where calls are pushed, and the rest is the scheduler's: awake says
	// that ticks look at the function and listed that it is among those of the next one,
	// wake is when it is to be woken, and doubted that the planner is to hear of it.
	core                   *core.Function
	awake, listed, doubted bool
	wake                   time.Duration
}

// term is that in which all functions are served.
var term = invocation.Term{Epoch: 1}

// function is the function of that number.
func (w *world) function(index int) *function {
	if f := w.functions[index]; f != nil {
		return f
	}
	i := sort.SearchInts(w.classEnds, index+1)
	f := &function{
		index: index, name: fmt.Sprintf("%08d", index), class: &w.config.Functions[i], result: &w.result.Functions[i],
	}
	w.functions[index] = f
	if w.scheduler != nil {
		w.scheduler.serveFunction(f)
	}
	return f
}
