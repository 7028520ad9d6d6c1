package node

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/colocate"
)

// aService is one of two threads that answer 100,000 requests a second each.
func aService() Service {
	return Service{
		Time: 10 * time.Microsecond, Variation: 1, Threads: 2, Packed: 1, Outstanding: 256,
		Objective: 1500 * time.Microsecond, Late: .01, Stall: 3 * time.Millisecond, Cold: 1.2,
	}
}

// aColocation lasts 60 s, with a job of a minute on each of four cores.
func aColocation(load ...float64) Colocation {
	job := BatchJob{Name: "job", Threads: 4, Work: 4 * time.Minute}
	return Colocation{
		Service: aService(), Load: load, Every: 10 * time.Second, Jobs: []BatchJob{job},
		Control: colocate.DefaultParams(4), Look: 100 * time.Millisecond, Points: 6,
	}
}

func colocated(t *testing.T, of Colocation) Colocated {
	t.Helper()
	r, err := Colocate(of)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWaitsAreThoseOfAQueue compares the formula with a queue of two servers, request by request.
func TestWaitsAreThoseOfAQueue(t *testing.T) {
	s := aService()
	for _, rate := range []float64{60e3, 140e3, 180e3} {
		r := rand.New(rand.NewPCG(1, 44))
		const n = 2000000
		var free [2]float64
		at, late, longer := 0.0, 0, 2*s.Time.Seconds()
		for range n {
			at += r.ExpFloat64() / rate
			first := 0
			if free[1] < free[0] {
				first = 1
			}
			began := max(at, free[first])
			free[first] = began + r.ExpFloat64()*s.Time.Seconds()
			if began-at > longer {
				late++
			}
		}
		got, want := s.waits(place{cores: 2}, rate, longer), float64(late)/n
		if math.Abs(got/want-1) > .05 {
			t.Errorf("at %g requests a second %.4f wait, and %.4f in the queue", rate, got, want)
		}
	}
}

func TestAServiceThatIsTooSlowViolatesEveryStep(t *testing.T) {
	of := aColocation(150e3)
	of.Control = colocate.Params{Cores: 4, Layout: colocate.Blocks, Least: 1, Most: 2, Grow: 1, Shrink: .1}
	if r := colocated(t, of); r.Violations != 0 {
		t.Errorf("with two cores %d of 6 steps are violated", r.Violations)
	}
	of.Service.Threads = 1
	if r := colocated(t, of); r.Violations != 6 {
		t.Errorf("with one thread %d of 6 steps are violated", r.Violations)
	}
}

func TestBatchGetsWhatTheServiceLeaves(t *testing.T) {
	of := aColocation(50e3) // half a core, and a fifth more on shared cores
	of.Service.Late = 0
	if r := colocated(t, of); math.Abs(r.Makespan.Seconds()-240/3.4) > .02 || r.Moves != 0 {
		t.Errorf("240 s of work on 3.4 cores took %s, with %d changes", r.Makespan, r.Moves)
	}
	of.Control = colocate.Params{Cores: 4, Layout: colocate.Shared, Least: 2, Most: 2, Grow: .6, Shrink: .5}
	if r := colocated(t, of); r.Makespan != 2*time.Minute || r.Work.Round(time.Millisecond) != 4*time.Minute {
		t.Errorf("240 s of work on 2 cores took %s, and were %s", r.Makespan, r.Work)
	}
	of.Load = []float64{61e3} // the small block's job is frozen
	of.Control = colocate.TwoState(4)
	of.Control.Shrink = .1
	of.Jobs = append(of.Jobs, of.Jobs[0])
	if r := colocated(t, of); math.Abs(r.Makespan.Seconds()-240) > .1 || r.Frozen < 119*time.Second {
		t.Errorf("two jobs of 120 s on the large block took %s, with one frozen for %s", r.Makespan, r.Frozen)
	}
}

func TestCoresThatComeLateAreReserved(t *testing.T) {
	of := aColocation(50e3)
	of.Service.Late = .2
	if r := colocated(t, of); r.Violations != 0 || r.Moves == 0 {
		t.Errorf("%d of 6 steps are violated, after %d changes", r.Violations, r.Moves)
	}
	of.Control.Most, of.Control.Freeze = 0, false
	if r := colocated(t, of); r.Violations != 6 {
		t.Errorf("without the second line %d of 6 steps are violated", r.Violations)
	}
}

// TestCoresThatComeLateForOthersAreNotReserved: keeping batch back would change nothing.
func TestCoresThatComeLateForOthersAreNotReserved(t *testing.T) {
	of := aColocation(50e3)
	of.Service.Late, of.Others = 0, Others{Cores: 0.4, Late: .04}
	of.For = 10 * time.Minute
	of.Jobs[0].Work = 100 * time.Minute
	doubts := colocated(t, of)
	of.Control.JudgeFor = 0
	believes := colocated(t, of)
	of.Control.Most, of.Control.Freeze = 0, false
	bands := colocated(t, of)
	if doubts.Violations+bands.Violations > 0 || doubts.Vain == 0 {
		t.Errorf("%d and %d steps are violated, after %d verdicts", doubts.Violations, bands.Violations, doubts.Vain)
	}
	if part := doubts.Work.Seconds() / bands.Work.Seconds(); part < .95 {
		t.Errorf("batch did %.3f of what it does without the second line", part)
	}
	if part := believes.Work.Seconds() / bands.Work.Seconds(); part > .5 {
		t.Errorf("batch did %.3f where nothing is doubted", part)
	}
	if math.Abs(bands.Late-.04) > .001 {
		t.Errorf("%.4f of the requests were late", bands.Late)
	}
}

func TestOthersTakeFromBatch(t *testing.T) {
	of := aColocation(50e3)
	of.Service.Late, of.Others.Cores = 0, 1
	if r := colocated(t, of); math.Abs(r.Makespan.Seconds()-240/2.4) > .02 {
		t.Errorf("240 s of work on 2.4 cores took %s", r.Makespan)
	}
}

func TestColocationsThatMakeNoSenseAreRefused(t *testing.T) {
	for about, worsen := range map[string]func(*Colocation){
		"objective": func(c *Colocation) { c.Service.Objective = 0 },
		"threads":   func(c *Colocation) { c.Service.Threads = 0 },
		"factor":    func(c *Colocation) { c.Service.Cold = .5 },
		"share":     func(c *Colocation) { c.Service.Late = 2 },
		"intervals": func(c *Colocation) { c.Load = nil },
		"others":    func(c *Colocation) { c.Others.Late = 2 },
		"looks":     func(c *Colocation) { c.Look = time.Millisecond },
		"grow":      func(c *Colocation) { c.Control.Grow = 0 },
	} {
		of := aColocation(1)
		worsen(&of)
		if _, err := Colocate(of); err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("error %v, want one about %s", err, about)
		}
	}
}
