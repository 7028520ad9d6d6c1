package node

import (
	"fmt"

	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// groups are the cores of a node in two groups.
type groups struct {
	*division
	short, long *group
	// used are how many core-seconds each computed since the last look, sampled samples ago.
	usedShort, usedLong, sampled float64
}

// samplesPerLook is how often the use of cores is looked at between two looks at the groups.
const samplesPerLook = 20

// divide gives short and long calls cores of their own.
func (t *tickets) divide(cores int) error {
	if t.Groups.Cores != cores {
		return fmt.Errorf("node: the groups are of %d cores, and the node has %d", t.Groups.Cores, cores)
	}
	pure, err := newDivision(*t.Groups)
	if err != nil {
		return err
	}
	g := &groups{division: pure}
	short, long := g.cores()
	g.short, g.long = newGroup(float64(short), 1), newGroup(float64(long), 1)
	t.w.groups = append(t.w.groups, g.short, g.long)
	t.groups, t.normal, t.low = g, g.short.bands[0], g.long.bands[0]
	t.tell(callorder.CoresChanged{Cores: short})
	t.w.after(g.params.Every.Seconds()/samplesPerLook, t.sampleGroups)
	return nil
}

// sampleGroups looks at what computes, and from time to time whether a core moves.
func (t *tickets) sampleGroups() {
	g := t.groups
	g.usedShort += inUse(g.short)
	g.usedLong += inUse(g.long)
	if g.sampled++; g.sampled == samplesPerLook {
		t.lookAtGroups()
	}
	t.w.after(g.params.Every.Seconds()/samplesPerLook, t.sampleGroups)
}

// inUse is which part of a group's cores computes.
func inUse(g *group) float64 {
	return min(1, float64(len(g.bands[0].jobs.items))/g.cores)
}

func (t *tickets) lookAtGroups() {
	g := t.groups
	waits, goesOn := t.core.Backlog()
	now := ofSeconds(t.w.now)
	moved := g.rebalance(now,
		groupLoad{Use: g.usedShort / g.sampled, Backlog: waits},
		groupLoad{Use: g.usedLong / g.sampled, Backlog: goesOn})
	g.usedShort, g.usedLong, g.sampled = 0, 0, 0
	if !moved {
		return
	}
	short, long := g.cores()
	g.short.cores, g.long.cores = float64(short), float64(long)
	t.tell(callorder.CoresChanged{Cores: short})
	if t.Moved != nil {
		t.Moved()
	}
}
