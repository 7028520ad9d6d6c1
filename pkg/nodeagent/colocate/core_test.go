package colocate

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const look = 100 * time.Millisecond

// desk steps a core look by look, at a usage and a share of waiting.
type desk struct {
	t    *testing.T
	core *Core
	now  time.Duration
	seen Looked
}

func newDesk(t *testing.T, p Params) *desk {
	t.Helper()
	core, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, core: core}
	d.core.Step(0, Looked{})
	return d
}

// looks looks n times while so many cores are used and work waits for a share of the time, and
// returns all effects.
func (d *desk) looks(n int, load, wait float64) []Effect {
	var all []Effect
	for range n {
		d.now += look
		d.seen.Usage += time.Duration(load * float64(look))
		d.seen.Waited += time.Duration(wait * float64(look))
		all = append(all, d.core.Step(d.now, d.seen)...)
	}
	return all
}

func (d *desk) expect(got []Effect, want ...Effect) {
	d.t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		d.t.Errorf("effects %v, want %v", got, want)
	}
}

func TestCoresAreReservedOnceWorkWaits(t *testing.T) {
	d := newDesk(t, DefaultParams(8))
	d.expect(d.core.Step(0, Arrived{Job: 1, Threads: 8}), Place{1, Cores{0, 8}})
	d.expect(d.looks(20, 1.7, 0.01))
	d.expect(d.looks(1, 1.7, 0.05), Place{1, Cores{3, 5}})
	if d.core.Reserved() != 3 {
		t.Errorf("1.7 cores at 60 %% each need 3, but %d are reserved", d.core.Reserved())
	}
	// Without waits one core returns each second.
	d.expect(d.looks(11, 1.7, 0), Place{1, Cores{2, 6}})
}

func TestReturnsThatHurtTakeLongerTheNextTime(t *testing.T) {
	d := newDesk(t, DefaultParams(4))
	d.core.Step(0, Arrived{Job: 1})
	var gaps []int
	for range 4 {
		d.looks(1, 0.5, 0.1) // it waits at once: a core is reserved again
		n := 0
		for ; d.core.Reserved() == 1; n++ {
			d.looks(1, 0.5, 0)
		}
		gaps = append(gaps, n)
	}
	if fmt.Sprint(gaps) != "[11 21 41 81]" {
		t.Errorf("cores returned after %v looks without waits", gaps)
	}
}

func TestMoreIsReservedThanNeededIfWorkWaitsNevertheless(t *testing.T) {
	d := newDesk(t, DefaultParams(4))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(1, 0.5, 0.1), Place{1, Cores{1, 3}})
	d.expect(d.looks(3, 0.5, 0.1))
	d.expect(d.looks(1, 0.5, 0.1), Place{1, Cores{2, 2}})
	d.expect(d.looks(4, 0.5, 0.1), Place{1, Cores{3, 1}})
	d.expect(d.looks(4, 0.5, 0.1), Freeze{1})
}

func TestWithoutOnWaitCoresAreReservedByNeed(t *testing.T) {
	p := DefaultParams(8)
	p.OnWait = false
	d := newDesk(t, p)
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(1, 1.3, 0), Place{1, Cores{3, 5}})
	d.expect(d.looks(9, 0.9, 0))
	d.expect(d.looks(2, 0.9, 0), Place{1, Cores{2, 6}})
	d.expect(d.looks(50, 0.9, 0)) // 0.9 cores need two
}

func TestTheLargestJobsAreFrozenOneAtATime(t *testing.T) {
	d := newDesk(t, DefaultParams(2)) // too few cores to reserve any
	for id := range JobID(3) {
		d.core.Step(0, Arrived{Job: id})
		d.core.Step(0, Sampled{Job: id})
	}
	for id, used := range []time.Duration{2, 9, 5} {
		d.core.Step(1, Sampled{Job: JobID(id), Usage: used})
	}
	d.expect(d.looks(3, 0.5, 0.1))
	d.expect(d.looks(1, 0.5, 0.1), Freeze{1})
	d.expect(d.looks(3, 0.5, 0.06), Freeze{2}) // the first step has helped, but not enough
	d.expect(d.looks(10, 0.5, 0))
	d.expect(d.looks(1, 0.5, 0), Thaw{1})
	d.expect(d.looks(10, 0.5, 0), Thaw{2})
}

func TestJobsAreThawedOnlyIfACoreMoreThanNeededIsFree(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.7, 0.1), Freeze{1})
	d.expect(d.looks(100, 0.7, 0))
	d.expect(d.looks(1, 0.6, 0), Thaw{1})
}

func TestNoJobIsFrozenForever(t *testing.T) {
	p := DefaultParams(2)
	p.JudgeFor = 0 // nobody doubts that it helps
	d := newDesk(t, p)
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 1.9, 1), Freeze{1})
	d.expect(d.looks(299, 1.9, 1))
	d.expect(d.looks(1, 1.9, 1), Thaw{1})
	d.expect(d.looks(9, 1.9, 1)) // it has a second
	d.expect(d.looks(1, 1.9, 1), Freeze{1})
	d.expect(d.core.Step(d.now, Stopped{}), Thaw{1})
}

func TestWhatMustNotBeFrozenIsOnlyKeptOffCores(t *testing.T) {
	d := newDesk(t, DefaultParams(4))
	d.core.Step(0, Arrived{Job: 1, Unstoppable: true})
	d.core.Step(0, Arrived{Job: 2})
	d.looks(9, 0.5, 0.1)
	d.expect(d.looks(4, 0.5, 0.1), Freeze{2})
	d.expect(d.looks(8, 0.5, 0.05))
	if d.core.Reserved() != 3 || d.core.Frozen() != 1 {
		t.Errorf("%d cores are reserved and %d jobs frozen", d.core.Reserved(), d.core.Frozen())
	}
}

func TestJobsStartInTheOrderOfTheirWork(t *testing.T) {
	p := DefaultParams(4)
	p.Threads = 4
	d := newDesk(t, p)
	d.expect(d.core.Step(0, Arrived{Job: 1, Threads: 4, Expected: time.Hour}), Place{1, Cores{0, 4}})
	d.expect(d.core.Step(0, Arrived{Job: 2, Threads: 2, Expected: time.Minute}))
	d.expect(d.core.Step(0, Arrived{Job: 3, Threads: 1, Expected: time.Second}))
	d.expect(d.core.Step(0, Arrived{Job: 4, Threads: 2, Expected: time.Hour}))
	d.expect(d.core.Step(0, Ended{1}), Place{2, Cores{0, 4}}, Place{3, Cores{0, 4}}, Place{4, Cores{0, 4}})
}

// TestTwoStateRunsTheReportsJobs follows the report's six jobs through its two blocks.
func TestTwoStateRunsTheReportsJobs(t *testing.T) {
	const fft, dedup, canneal, blackscholes, freqmine, ferret = 1, 2, 3, 4, 5, 6
	d := newDesk(t, TwoState(4))
	one, two, onSmall, onLarge := Cores{0, 1}, Cores{0, 2}, Cores{1, 1}, Cores{2, 2}
	d.expect(d.core.Step(0, Arrived{Job: freqmine, Length: Long}), Confine{two}, Place{freqmine, onLarge})
	d.expect(d.core.Step(0, Arrived{Job: fft, Length: Short}), Confine{one}, Place{fft, onSmall})
	d.expect(d.core.Step(0, Arrived{Job: dedup, Length: Short}))
	d.expect(d.core.Step(0, Arrived{Job: ferret, Length: Long}))
	d.expect(d.core.Step(0, Arrived{Job: canneal, Length: Medium}))
	d.expect(d.core.Step(0, Arrived{Job: blackscholes, Length: Medium}))
	d.expect(d.looks(1, 0.61, 0), Freeze{fft}, Confine{two})
	d.expect(d.core.Step(d.now, Ended{freqmine}), Place{ferret, onLarge})
	d.expect(d.looks(1, 1.2, 0), Confine{one}, Thaw{fft})
	d.expect(d.core.Step(d.now, Ended{fft}), Place{dedup, onSmall})
	d.expect(d.core.Step(d.now, Ended{dedup}), Place{canneal, onSmall})
	d.expect(d.core.Step(d.now, Ended{canneal}), Place{blackscholes, onSmall})
	d.expect(d.looks(1, 0.7, 0), Freeze{blackscholes}, Confine{two})
	d.expect(d.core.Step(d.now, Ended{ferret}), Place{blackscholes, onLarge}, Thaw{blackscholes})
}

func TestBadParamsAreNamed(t *testing.T) {
	for setting, worsen := range map[string]func(*Params){
		"cores":               func(p *Params) { p.Cores = 0 },
		"layout":              func(p *Params) { p.Layout = "heap" },
		"least reserved":      func(p *Params) { p.Least = -1 },
		"most reserved cores": func(p *Params) { p.Most = 4 },
		"at least the least":  func(p *Params) { p.Least, p.Most = 3, 2 },
		"has no others":       func(p *Params) { *p = TwoState(4); p.Least = 0 },
		"more than the least": func(p *Params) { *p = TwoState(4); p.Least = 2 },
		"grow":                func(p *Params) { p.Grow = 0 },
		"shrink is":           func(p *Params) { p.Shrink = 0 },
		"shrink after":        func(p *Params) { p.ShrinkAfter = -1 },
		"max wait":            func(p *Params) { p.MaxWait = 1 },
		"freeze is on":        func(p *Params) { *p = TwoState(4); p.Freeze = true },
		"on wait is on":       func(p *Params) { *p = TwoState(4); p.OnWait = true },
		"freeze after":        func(p *Params) { p.FreezeAfter = -1 },
		"thaw every":          func(p *Params) { p.ThawEvery = 0 },
		"longest freeze":      func(p *Params) { p.LongestFreeze = time.Millisecond },
		"judge for":           func(p *Params) { p.JudgeFor = time.Millisecond },
		"helped":              func(p *Params) { p.Helped = 1 },
		"prove every":         func(p *Params) { p.ProveEvery = time.Millisecond },
		"rest is":             func(p *Params) { p.Rest = 0 },
		"longest rest":        func(p *Params) { p.LongestRest = time.Second },
		"new cause":           func(p *Params) { p.NewCause = 1 },
		"threads":             func(p *Params) { p.Threads = -1 },
	} {
		p := DefaultParams(4)
		worsen(&p)
		if _, err := New(p); err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("error %v, want one about %s", err, setting)
		}
	}
	for cores := 1; cores <= 128; cores++ {
		if err := DefaultParams(cores).Validate(); err != nil {
			t.Error(err)
		}
	}
	if err := TwoState(4).Validate(); err != nil {
		t.Error(err)
	}
	if most := DefaultParams(3).Most; most != 0 {
		t.Errorf("on 3 cores %d are reserved", most)
	}
}
