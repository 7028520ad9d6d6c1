package colocate

import (
	"fmt"
	"math"
	"time"
)

// Layout is how batch jobs share the cores that are not reserved.
type Layout string

// Layouts.
const (
	// Shared: all jobs run on all of these cores. They start in the order of their expected
	// work, the least first.
	Shared Layout = "shared"
	// Blocks: the cores from Least to Most are the small block, those above the large one. Each
	// runs one job at a time; the small block prefers short jobs, the large one long ones. While
	// the small block is reserved, its job is frozen. Latency-critical work has only what is
	// reserved.
	Blocks Layout = "blocks"
)

// Params is what a core decides by.
type Params struct {
	// Cores is how many cores the node has, at least 1.
	Cores  int
	Layout Layout
	// Least and Most bound how many cores are reserved: 0 <= Least <= Most < Cores. With the
	// layout Blocks, Most may be Cores: there is no large block then.
	Least, Most int
	// Grow is how much of each reserved core latency-critical work may use before it needs
	// another, in (0, 1].
	Grow float64
	// Shrink is how much: while R cores are reserved and the work uses no more than Shrink times
	// R-1, one core too many is reserved. Above Grow, cores return that are needed at once
	// again, as in the report. More than 0.
	Shrink float64
	// ShrinkAfter is for how long one core too many must have been reserved; not negative. Both
	// are for params without OnWait.
	ShrinkAfter time.Duration

	// MaxWait is the share of the time in which latency-critical work may wait, in [0, 1).
	MaxWait float64
	// OnWait reserves cores only while work waits for more than MaxWait.
	OnWait bool
	// Freeze freezes jobs while work waits for more than MaxWait nevertheless.
	Freeze bool
	// FreezeAfter is for how long it must have waited before a job is frozen or, with OnWait, a core
	// more than is needed reserved; not negative.
	FreezeAfter time.Duration
	// ThawEvery is how long nothing must have waited before a job is thawed or, with OnWait, a
	// core returned; more than 0 with Freeze or OnWait.
	ThawEvery time.Duration
	// LongestFreeze is when a frozen job runs again whatever waits, and what ThawEvery grows to;
	// at least ThawEvery with Freeze or OnWait.
	LongestFreeze time.Duration

	// JudgeFor is for how long what is kept back is given back, in two halves, to see whether work then
	// waits longer; at least ThawEvery. 0 believes of each step that it helps.
	JudgeFor time.Duration
	// Helped is which part of a wait must be gone while batch is kept back, in (0, 1).
	Helped float64
	// ProveEvery is after how long what is kept back is given back for JudgeFor, if work waits
	// nevertheless. It doubles each time that has shown that it helps, up to LongestFreeze without JudgeFor.
	ProveEvery time.Duration
	// Rest is for how long nothing is kept back after it did not help. It doubles up to LongestRest
	// each time, and is halved each time it has helped. If work waits NewCause times as much or as little
	// then, by the time and for what it uses, that is a new cause, and ends the rest once a quarter of it
	// is over.
	Rest, LongestRest time.Duration
	NewCause          float64

	// Threads is how many threads of jobs run at the same time with the layout Shared; jobs
	// beyond are queued. 0 starts all jobs at once.
	Threads int
}

// leastForReserve is how many cores a node has at least on which some are reserved: with fewer, one
// core is too large a part of the node.
const leastForReserve = 4

// DefaultParams returns what Windlass uses on a node with that many cores: batch work shares all
// cores in the low band until latency-critical work waits. On fewer than four cores nothing is
// ever reserved.
func DefaultParams(cores int) Params {
	p := Params{
		Cores: cores, Layout: Shared, Grow: 0.6, Shrink: 0.5, ShrinkAfter: time.Second,
		MaxWait: 0.02, OnWait: true, Freeze: true, FreezeAfter: 300 * time.Millisecond,
		ThawEvery: time.Second, LongestFreeze: 30 * time.Second,
		JudgeFor: time.Second, Helped: 0.25, ProveEvery: 3 * time.Second,
		Rest: 10 * time.Second, LongestRest: 2 * time.Minute, NewCause: 2,
	}
	if cores >= leastForReserve {
		p.Most = cores - 1
	}
	return p
}

// TwoState returns the report's controller: the service needs its second core above 60 % of one,
// and gives it back below 130 % of two. The report has four cores; with two there is no large block.
func TwoState(cores int) Params {
	return Params{Cores: cores, Layout: Blocks, Least: 1, Most: 2, Grow: 0.6, Shrink: 1.3}
}

// Validate says what is wrong with the params.
func (p Params) Validate() error {
	switch {
	case p.Cores < 1:
		return fmt.Errorf("cores is %d; it must be at least 1", p.Cores)
	case p.Layout != Shared && p.Layout != Blocks:
		return fmt.Errorf("layout %q is unknown; use %s or %s", p.Layout, Shared, Blocks)
	case p.Least < 0:
		return fmt.Errorf("least reserved cores is %d; it must not be negative", p.Least)
	case p.Most < p.Least:
		return fmt.Errorf("most reserved cores is %d; it must be at least the least, %d", p.Most, p.Least)
	case p.Most > p.Cores || p.Most == p.Cores && p.Layout != Blocks:
		return fmt.Errorf("most reserved cores is %d; it must leave one of the %d cores", p.Most, p.Cores)
	case p.Layout == Blocks && p.Least < 1:
		return fmt.Errorf("least reserved cores is %d; with layout %s it must be at least 1, because latency-critical work has no others", p.Least, Blocks)
	case p.Layout == Blocks && p.Most == p.Least:
		return fmt.Errorf("most reserved cores is %d; with layout %s it must be more than the least", p.Most, Blocks)
	case !(p.Grow > 0 && p.Grow <= 1):
		return fmt.Errorf("grow is %g; it must be more than 0 and at most 1", p.Grow)
	case !(p.Shrink > 0):
		return fmt.Errorf("shrink is %g; it must be more than 0", p.Shrink)
	case p.ShrinkAfter < 0:
		return fmt.Errorf("shrink after is %s; it must not be negative", p.ShrinkAfter)
	case !(p.MaxWait >= 0 && p.MaxWait < 1):
		return fmt.Errorf("max wait is %g; it must be from 0 to less than 1", p.MaxWait)
	}
	return p.validateFreeze()
}

func (p Params) validateFreeze() error {
	switch {
	case p.Freeze && p.Layout == Blocks:
		return fmt.Errorf("freeze is on; layout %s freezes by blocks alone", Blocks)
	case p.OnWait && p.Layout == Blocks:
		return fmt.Errorf("on wait is on; layout %s reserves by need alone", Blocks)
	case p.FreezeAfter < 0:
		return fmt.Errorf("freeze after is %s; it must not be negative", p.FreezeAfter)
	case p.waits() && p.ThawEvery <= 0:
		return fmt.Errorf("thaw every is %s; it must be more than 0", p.ThawEvery)
	case p.waits() && p.LongestFreeze < p.ThawEvery:
		return fmt.Errorf("longest freeze is %s; it must be at least thaw every, %s", p.LongestFreeze, p.ThawEvery)
	case p.Threads < 0:
		return fmt.Errorf("threads is %d; it must not be negative", p.Threads)
	case p.waits() && p.JudgeFor != 0:
		return p.validateDoubt()
	}
	return nil
}

func (p Params) validateDoubt() error {
	switch {
	case p.JudgeFor < p.ThawEvery:
		return fmt.Errorf("judge for is %s; it must be at least thaw every, %s, or 0", p.JudgeFor, p.ThawEvery)
	case !(p.Helped > 0 && p.Helped < 1):
		return fmt.Errorf("helped is %g; it must be more than 0 and less than 1", p.Helped)
	case p.ProveEvery < p.JudgeFor || p.ProveEvery > p.LongestFreeze:
		return fmt.Errorf("prove every is %s; it must be from judge for, %s, to longest freeze, %s", p.ProveEvery, p.JudgeFor, p.LongestFreeze)
	case p.Rest <= 0:
		return fmt.Errorf("rest is %s; it must be more than 0", p.Rest)
	case p.LongestRest < p.Rest:
		return fmt.Errorf("longest rest is %s; it must be at least rest, %s", p.LongestRest, p.Rest)
	case !(p.NewCause > 1):
		return fmt.Errorf("new cause is %g; it must be more than 1", p.NewCause)
	}
	return nil
}

// waits says whether what work waited matters.
func (p Params) waits() bool { return p.Freeze || p.OnWait }

// need is how many cores latency-critical work needs when it uses load cores. A rounding error above a
// whole number of cores adds none.
func (p Params) need(load float64) int {
	const rounding = 1e-9
	return int(math.Ceil(min(load/p.Grow, float64(p.Cores)) - rounding))
}

// late says whether work waits for too large a share of the time.
func (p Params) late(wait float64) bool { return p.waits() && wait > p.MaxWait }
