package decisionlog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// Entry is one decision, or several equal ones in a row.
type Entry struct {
	// Number rises with each entry of a function, from 1.
	Number uint64
	// At is when it was decided first, and Until when last.
	At, Until time.Time
	// Times is the number of decisions, at least 1. Snapshot and Decision are those of the
	// last one.
	Times    int
	Params   autoscaler.Params
	Snapshot autoscaler.Snapshot
	Decision autoscaler.Decision
	Outcome  Outcome
}

// Outcome is what was done about a decision.
type Outcome struct {
	// Wanted is how many instances were to be launched.
	Wanted int
	// Placed are the nodes of the launched instances.
	Placed []Placement
	// Cancelled is how many starting instances were stopped.
	Cancelled int
	// NoRoom explains why wanted instances found no node; empty if there is another reason, or
	// none.
	NoRoom string
	// HeldBack is why wanted instances may not be launched for a while though there is room.
	HeldBack HeldBack
	// MakingRoom says that an idle instance of another function is being evicted.
	MakingRoom bool
	// Floor is the minimum that asked for more instances, if there were fewer.
	Floor Floor
}

// HeldBack is why, and for how long, the cluster keeps a function's instances from being launched,
// such as while its API does not answer. Reason is empty if it does not.
type HeldBack struct {
	Reason string
	For    time.Duration
}

// Floor is the minimum number of instances at a moment, and its source.
type Floor struct {
	Instances int
	Of        string
}

// What a Floor comes from, in words.
const (
	FloorSpec     = "scaling.minInstances"
	FloorProof    = "rollout.verify"
	FloorSchedule = "scaling.windows"
	FloorAwaited  = "a call that is near, by the function's idle times,"
)

// Placement is how many instances were launched on one node.
type Placement struct {
	Node      string
	Instances int
}

// Launched is how many instances were launched.
func (o Outcome) Launched() int {
	n := 0
	for _, p := range o.Placed {
		n += p.Instances
	}
	return n
}

// Place groups the nodes of single instances, the node with most of them first.
func Place(nodes []string) []Placement {
	var placed []Placement
	for _, node := range nodes {
		i := slices.IndexFunc(placed, func(p Placement) bool { return p.Node == node })
		if i < 0 {
			placed = append(placed, Placement{Node: node, Instances: 1})
		} else {
			placed[i].Instances++
		}
	}
	slices.SortFunc(placed, func(a, b Placement) int {
		return cmp.Or(b.Instances-a.Instances, strings.Compare(a.Node, b.Node))
	})
	return placed
}

// changed reports whether the decision changed the number of instances.
func (e *Entry) changed() bool { return e.Outcome.Launched() > 0 || e.Outcome.Cancelled > 0 }

// repeats reports whether e equals the entry before.
func (e *Entry) repeats(before *Entry) bool {
	return !e.changed() && !before.changed() && e.Decision.Why == before.Decision.Why &&
		(e.Outcome.Wanted > 0) == (before.Outcome.Wanted > 0) &&
		(e.Outcome.NoRoom == "") == (before.Outcome.NoRoom == "") &&
		(e.Outcome.HeldBack.Reason == "") == (before.Outcome.HeldBack.Reason == "") && e.Outcome.Floor.Of == before.Outcome.Floor.Of
}

// Summary says in a few words what was done, with the reason, such as "+1 instance
// (FirstInstance)".
func (e Entry) Summary() string {
	return fmt.Sprintf("%s (%s)", e.change(), e.Decision.Why)
}

func (e Entry) change() string {
	launched, wanted := e.Outcome.Launched(), e.Outcome.Wanted
	switch {
	case e.Outcome.Cancelled > 0:
		return "-" + count(e.Outcome.Cancelled, "instance", "instances")
	case launched < wanted:
		return fmt.Sprintf("+%d of %s", launched, count(wanted, "instance", "instances"))
	case launched > 0:
		return "+" + count(launched, "instance", "instances")
	}
	return "no change"
}

// Explain says why, from which inputs, and what was done.
func (e Entry) Explain() string {
	parts := []string{autoscaler.Explain(e.Snapshot, e.Decision, e.Params)}
	if floor := e.Outcome.Floor; floor.Of != "" {
		parts = append(parts, fmt.Sprintf("%s asks for at least %d", floor.Of, floor.Instances))
	}
	if len(e.Outcome.Placed) > 0 {
		parts[len(parts)-1] += " → " + explainPlaced(e.Outcome.Placed)
	}
	if missing := e.Outcome.Wanted - e.Outcome.Launched(); missing > 0 {
		parts = append(parts, e.explainMissing(missing))
	}
	if e.Outcome.MakingRoom {
		parts = append(parts, "an idle instance is evicted to make room")
	}
	return strings.Join(parts, "; ")
}

// explainMissing says why wanted instances were not launched.
func (e Entry) explainMissing(missing int) string {
	switch {
	case e.Outcome.NoRoom != "":
		return fmt.Sprintf("%d not placed: %s", missing, e.Outcome.NoRoom)
	case e.Outcome.HeldBack.Reason != "":
		return fmt.Sprintf("%d held back for %s: %s", missing, autoscaler.HumanTime(e.Outcome.HeldBack.For), e.Outcome.HeldBack.Reason)
	case e.Snapshot.Failing:
		return fmt.Sprintf("%d held back until an instance starts", missing)
	}
	return fmt.Sprintf("%d put off to a later tick, since instances are created at a bounded rate and in turns of the namespaces", missing)
}

// maxPlaced bounds the nodes that a sentence names.
const maxPlaced = 6

func explainPlaced(placed []Placement) string {
	var words []string
	for _, p := range placed[:min(len(placed), maxPlaced)] {
		if p.Instances == 1 {
			words = append(words, "node "+p.Node)
		} else {
			words = append(words, fmt.Sprintf("node %s (%d)", p.Node, p.Instances))
		}
	}
	text := strings.Join(words, ", ")
	if more := len(placed) - len(words); more > 0 {
		text += fmt.Sprintf(" and %d more nodes", more)
	}
	return text
}
