package node

import (
	"fmt"
	"time"
)

// CoreRule is by what a core moves from one group to the other.
type CoreRule string

// Rules for core groups.
const (
	// ByUse: to the group that uses more of its cores, if the uses differ by more than
	// Threshold (Zhao et al., rightsizing). Under overload both use all, and it stands still.
	ByUse CoreRule = "use"
	// ByBacklog: to the group with more work for each of its cores, if the other has less than
	// half of that.
	ByBacklog CoreRule = "backlog"
)

// CoreGroups is what core groups are divided by. Short calls run on one group of cores, in
// order, and calls that have outlived their slice on the other one, sharing it.
type CoreGroups struct {
	// Cores is how many there are, and MinShort and MinLong how many each group keeps, at least 1 each.
	Cores, MinShort, MinLong int
	// Every is how often it is looked, and Rest how long after a move the next one may follow.
	Every, Rest time.Duration
	Rule        CoreRule
	// Threshold is that of ByUse, from 0 to 1.
	Threshold float64
}

// DefaultCoreGroups returns the params of a node with that many cores.
func DefaultCoreGroups(cores int) CoreGroups {
	return CoreGroups{
		Cores: cores, MinShort: 1, MinLong: 1, Every: 250 * time.Millisecond, Rest: time.Second,
		Rule: ByBacklog, Threshold: .1,
	}
}

// Validate says what is wrong with the params.
func (p CoreGroups) Validate() error {
	switch {
	case p.MinShort < 1 || p.MinLong < 1:
		return fmt.Errorf("MinShort is %d and MinLong is %d; both must be at least 1", p.MinShort, p.MinLong)
	case p.MinShort+p.MinLong > p.Cores:
		return fmt.Errorf("the groups keep %d and %d cores, and the node has %d; lower one", p.MinShort, p.MinLong, p.Cores)
	case p.Every <= 0 || p.Rest < 0:
		return fmt.Errorf("looking every %s and resting %s after a move; they must be more than 0 and at least 0", p.Every, p.Rest)
	case p.Rule != ByUse && p.Rule != ByBacklog:
		return fmt.Errorf("group rule %q is unknown; use %s or %s", p.Rule, ByUse, ByBacklog)
	case !(p.Threshold >= 0 && p.Threshold <= 1):
		return fmt.Errorf("threshold is %g; it must be from 0 to 1", p.Threshold)
	}
	return nil
}

// groupLoad is what a group of cores has to do.
type groupLoad struct {
	// Use is which part of its cores computed since the last look, from 0 to 1.
	Use float64
	// Backlog is what its calls are expected to compute yet, those that wait for it included.
	Backlog time.Duration
}

// division divides the cores of a node: those with the lowest numbers are for short calls.
type division struct {
	params CoreGroups
	long   int
	// moved is when a core moved last, if ever.
	moved time.Duration
	ever  bool
}

// newDivision gives long calls as few cores as they may have.
func newDivision(params CoreGroups) (*division, error) {
	if err := params.Validate(); err != nil {
		return nil, err
	}
	return &division{params: params, long: params.MinLong}, nil
}

// rebalance decides whether a core moves, and reports whether one did. Times must not go back.
func (g *division) rebalance(now time.Duration, short, long groupLoad) (moved bool) {
	if g.ever && now-g.moved < g.params.Rest {
		return false
	}
	after := g.long + g.params.direction(g.params.Cores-g.long, g.long, short, long)
	if after == g.long || after < g.params.MinLong || g.params.Cores-after < g.params.MinShort {
		return false
	}
	g.long, g.moved, g.ever = after, now, true
	return true
}

// direction is 1 if the long group should have a core more, and -1 if the short one should.
func (p CoreGroups) direction(shortCores, longCores int, short, long groupLoad) int {
	if p.Rule == ByUse {
		switch {
		case long.Use > short.Use+p.Threshold:
			return 1
		case short.Use > long.Use+p.Threshold:
			return -1
		}
		return 0
	}
	each, other := float64(long.Backlog)/float64(longCores), float64(short.Backlog)/float64(shortCores)
	switch {
	case each > 2*other:
		return 1
	case other > 2*each:
		return -1
	}
	return 0
}

// cores are how many cores the groups have.
func (g *division) cores() (short, long int) { return g.params.Cores - g.long, g.long }
