package colocate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// world is a node on which work waits for batch jobs, for others, or for both.
type world struct {
	params Params
	jobs   int
	// elsewhere is for which share of the time work waits whatever batch does, and batch how much
	// more while as many jobs run as there are cores: at a time.
	elsewhere, batch func(at time.Duration) float64
	// quiet is how many cores, if reserved, let work wait for batch no more.
	quiet int
	// noise is the standard deviation of a wait, as a part of it, and rough over how many looks the noise
	// goes on.
	noise float64
	rough int
	load  float64
}

func always(share float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return share }
}

// passed is what was done in a world.
type passed struct {
	// frozen and kept are the mean number of frozen jobs and of reserved cores, as parts of all, and wait
	// the mean share of waiting.
	frozen, kept, wait float64
	// longest is the longest time for which anything was kept back without a pause, and turns how often
	// all of it was given back.
	longest time.Duration
	turns   int
	vain    int
}

func (w world) run(t *testing.T, seed uint64, looks int) passed {
	t.Helper()
	d := newDesk(t, w.params)
	for id := range JobID(w.jobs) {
		d.core.Step(0, Arrived{Job: id, Threads: 1})
	}
	r := rand.New(rand.NewPCG(seed, 47))
	var out passed
	var since time.Duration
	held, factor := false, 1.0
	for n := range looks {
		if w.noise > 0 && n%max(1, w.rough) == 0 {
			factor = max(0, 1+w.noise*r.NormFloat64())
		}
		running := float64(w.jobs - d.core.Frozen())
		exposed := min(1, running/float64(w.params.Cores))
		if w.quiet > 0 && d.core.Reserved() >= w.quiet {
			exposed = 0
		}
		wait := min(1, factor*(w.elsewhere(d.now)+exposed*w.batch(d.now)))
		out.wait += wait / float64(looks)
		out.frozen += float64(d.core.Frozen()) / float64(w.jobs) / float64(looks)
		out.kept += float64(d.core.Reserved()) / float64(w.params.Cores) / float64(looks)
		d.looks(1, w.load, wait)
		if now := d.core.level() > 0; now != held {
			if held = now; held {
				since = d.now
			} else {
				out.turns++
			}
		}
		if held {
			out.longest = max(out.longest, d.now-since)
		}
	}
	out.vain = d.core.Vain()
	return out
}

// ladder is how long it takes to keep back all that can be, while nothing helps.
func (w world) ladder() time.Duration {
	steps := 2 // by need, and a rounding of logarithms
	for n := w.params.Cores; n > 0; n /= 2 {
		steps++
	}
	for n := w.jobs; n > 0; n /= 2 {
		steps++
	}
	return time.Duration(steps) * (w.params.FreezeAfter + look)
}

// TestWhatChangesNothingIsGivenBack is about waits that have nothing to do with batch.
func TestWhatChangesNothingIsGivenBack(t *testing.T) {
	for _, cores := range []int{1, 2, 4, 16, 64} {
		for _, jobs := range []int{1, 3, 40} {
			for _, wait := range []float64{0.03, 0.3, 1} {
				p := DefaultParams(cores)
				w := world{params: p, jobs: jobs, elsewhere: always(wait), batch: always(0), load: 0.4 * float64(cores)}
				out := w.run(t, 1, 6000)
				if bound := w.ladder() + p.JudgeFor + look; out.longest > bound {
					t.Errorf("%d cores, %d jobs, a wait of %g: batch was kept back for %s for nothing, and %s are allowed", cores, jobs, wait, out.longest, bound)
				}
				if out.frozen > 0.03 || out.kept > 0.06 || out.vain == 0 {
					t.Errorf("%d cores, %d jobs, a wait of %g: %.3f of the jobs frozen and %.3f of the cores kept, %d times for nothing", cores, jobs, wait, out.frozen, out.kept, out.vain)
				}
			}
		}
	}
}

// TestWaitsThatChangeByThemselvesCostLittle is about others that come and go, so that now and then a
// step seems to help.
func TestWaitsThatChangeByThemselvesCostLittle(t *testing.T) {
	for _, cores := range []int{2, 4, 16} {
		for _, rough := range []int{1, 3, 10, 30} {
			const seeds = 10
			frozen, kept := 0.0, 0.0
			for seed := range uint64(seeds) {
				w := world{params: DefaultParams(cores), jobs: 6, elsewhere: always(0.3), batch: always(0), noise: 0.5, rough: rough, load: 0.7}
				out := w.run(t, seed, 6000)
				frozen, kept = frozen+out.frozen/seeds, kept+out.kept/seeds
			}
			if frozen > 0.15 || kept > 0.2 {
				t.Errorf("%d cores, waits that last %d looks: %.3f frozen, %.3f kept", cores, rough, frozen, kept)
			}
		}
	}
}

// TestWhatHelpsStays is about waits for batch alone, and about those that are so for a half.
func TestWhatHelpsStays(t *testing.T) {
	for _, cores := range []int{2, 4, 16} {
		for _, noise := range []float64{0, 0.3} {
			for seed := range uint64(3) {
				w := world{params: DefaultParams(cores), jobs: cores + 2, elsewhere: always(0), batch: always(0.3), noise: noise, rough: 10, load: 0.7}
				if out := w.run(t, seed, 6000); out.wait > 0.03 || out.vain > 0 {
					t.Errorf("%d cores, noise %g: work waited for %.3f of the time, %d times for nothing", cores, noise, out.wait, out.vain)
				}
				w.elsewhere, w.batch = always(0.15), always(0.15)
				if out := w.run(t, seed, 6000); out.wait > 0.2 || out.frozen < 0.7 {
					t.Errorf("%d cores, noise %g, half elsewhere: work waited for %.3f of the time, with %.2f frozen", cores, noise, out.wait, out.frozen)
				}
			}
		}
	}
}

// TestReservedCoresThatHelpStay is about waits that end once two cores are reserved, while nothing is
// frozen.
func TestReservedCoresThatHelpStay(t *testing.T) {
	w := world{params: DefaultParams(8), jobs: 8, elsewhere: always(0), batch: always(0.3), quiet: 2, load: 0.7}
	if out := w.run(t, 1, 6000); out.wait > 0.01 || out.frozen > 0 || out.vain > 0 {
		t.Errorf("work waited for %.3f of the time, %.3f were frozen, %d times for nothing", out.wait, out.frozen, out.vain)
	}
}

// TestTheCauseMayChange lets others come and go beside batch that is a cause itself.
func TestTheCauseMayChange(t *testing.T) {
	minutes := func(at time.Duration) int { return int(at / time.Minute) }
	w := world{
		params: DefaultParams(4), jobs: 6, load: 0.7,
		elsewhere: func(at time.Duration) float64 { return []float64{0.4, 0, 0.4, 0, 0.4}[minutes(at)] },
		batch:     func(at time.Duration) float64 { return []float64{0, 0.2, 0, 0.2, 0}[minutes(at)] },
	}
	out := w.run(t, 1, 3000)
	// 0.4 in three of five minutes cannot be helped. In the others it may wait while a rest lasts.
	if out.wait > 0.24+0.03 || out.frozen > 0.6 {
		t.Errorf("work waited for %.3f of the time, with %.2f frozen", out.wait, out.frozen)
	}
}

// TestAStoryOfAStepInVain follows two jobs on two cores, where nothing can be reserved.
func TestAStoryOfAStepInVain(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	for id := range JobID(2) {
		d.core.Step(0, Arrived{Job: id})
	}
	d.expect(d.looks(4, 0.5, 0.1), Freeze{0})
	d.expect(d.looks(3, 0.5, 0.1), Freeze{1})
	d.expect(d.looks(4, 0.5, 0.1))
	d.expect(d.looks(1, 0.5, 0.08), Thaw{0}, Thaw{1}) // half a second after all was frozen
	d.expect(d.looks(5, 0.5, 0.1), Freeze{0}, Freeze{1})
	d.expect(d.looks(5, 0.5, 0.08), Thaw{0}, Thaw{1})
	d.expect(d.looks(4, 0.5, 0.1))
	if d.core.Vain() != 0 {
		t.Error("the verdict came before the probe was over")
	}
	d.expect(d.looks(100, 0.5, 0.1))
	if d.core.Vain() != 1 {
		t.Errorf("%d verdicts", d.core.Vain())
	}
	d.expect(d.looks(1, 0.5, 0.1), Freeze{0}) // the rest of ten seconds is over
	if d.core.Step(d.now, Stopped{}); d.core.Vain() != 1 {
		t.Errorf("%d verdicts once it was stopped", d.core.Vain())
	}
}

// TestAStoryOfAStepThatHelps gives back what helped, and keeps it back again.
func TestAStoryOfAStepThatHelps(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.4), Freeze{1})
	d.expect(d.looks(30, 0.5, 0.1)) // it fell to a quarter, but others make it wait, too
	d.expect(d.looks(5, 0.5, 0.1), Thaw{1})
	d.expect(d.looks(5, 0.5, 0.4), Freeze{1})
	d.expect(d.looks(5, 0.5, 0.1), Thaw{1})
	d.expect(d.looks(5, 0.5, 0.4), Freeze{1})
	d.expect(d.looks(60, 0.5, 0.1)) // proven once: twice as long
	d.expect(d.looks(5, 0.5, 0.1), Thaw{1})
	d.expect(d.looks(5, 0.5, 0.1), Freeze{1})
	d.expect(d.looks(5, 0.5, 0.1), Thaw{1})
	d.expect(d.looks(5, 0.5, 0.1)) // the cause has gone meanwhile
	if d.core.Vain() != 1 {
		t.Errorf("%d verdicts that it does not help", d.core.Vain())
	}
}

// TestAJobThatEndsInAProbeLeavesNoVerdict has work wait for a job that ends in a probe, and for others.
func TestAJobThatEndsInAProbeLeavesNoVerdict(t *testing.T) {
	for phase := range probePhases {
		d := newDesk(t, DefaultParams(2))
		d.core.Step(0, Arrived{Job: 1})
		d.core.Step(0, Arrived{Job: 2})
		d.looks(7, 0.5, 0.4)
		d.expect(d.looks(30, 0.5, 0.1)) // both are frozen
		there := true
		for n := range probePhases {
			if n == phase {
				d.core.Step(d.now, Ended{Job: 1})
				there = false
			}
			wait := 0.1
			if there && n%2 == 1 {
				wait = 0.4
			}
			d.looks(5, 0.5, wait)
		}
		if d.core.Vain() != 0 || d.core.Frozen() != 1 {
			t.Errorf("it ended in phase %d: %d verdicts that it does not help, and %d frozen", phase, d.core.Vain(), d.core.Frozen())
		}
		if d.looks(60, 0.5, 0.1); d.core.Vain() != 1 || d.core.Frozen() != 0 {
			t.Errorf("it ended in phase %d: %d verdicts after the next probe, and %d frozen", phase, d.core.Vain(), d.core.Frozen())
		}
	}
}

// TestAJobThatEndsAfterTheLastStepLeavesNoVerdict: what was seen since that step is the first phase of a probe.
func TestAJobThatEndsAfterTheLastStepLeavesNoVerdict(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1, Unstoppable: true})
	d.core.Step(0, Arrived{Job: 2})
	d.expect(d.looks(4, 0.5, 0.4), Freeze{2})
	d.looks(3, 0.5, 0.4) // for the one that cannot be frozen
	d.core.Step(d.now, Ended{Job: 1})
	d.expect(d.looks(2, 0.5, 0.4), Thaw{2})
	d.looks(15, 0.5, 0.1)
	if d.core.Vain() != 0 || d.core.Frozen() != 1 {
		t.Errorf("%d verdicts that it does not help, and %d frozen", d.core.Vain(), d.core.Frozen())
	}
}

// TestProofsComeBeforeJobsGoOnInAnyCase: work waits for the one job, and for others. However often that was proven,
// the next proof thaws the job for half a second and not for long.
func TestProofsComeBeforeJobsGoOnInAnyCase(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.4), Freeze{1})
	for _, after := range []int{35, 65, 125, 245, 295, 295} { // looks
		d.expect(d.looks(after-1, 0.5, 0.1))
		d.expect(d.looks(1, 0.5, 0.1), Thaw{1})
		d.expect(d.looks(5, 0.5, 0.4), Freeze{1})
		d.expect(d.looks(5, 0.5, 0.1), Thaw{1})
		d.expect(d.looks(5, 0.5, 0.4), Freeze{1})
	}
}

// TestWhatWasBeforeTheFirstLookDoesNotCount: a step that helps is believed for ProveEvery, however long the core
// has been there.
func TestWhatWasBeforeTheFirstLookDoesNotCount(t *testing.T) {
	core, err := New(DefaultParams(2))
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, core: core, now: time.Hour}
	d.core.Step(d.now, Looked{})
	d.core.Step(d.now, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.4), Freeze{1})
	d.expect(d.looks(34, 0.5, 0.1))
	d.expect(d.looks(1, 0.5, 0.1), Thaw{1})
}

// TestShortWaitsOfOthersAreInVainAtLast has waits in bursts that are too short for a second step.
func TestShortWaitsOfOthersAreInVainAtLast(t *testing.T) {
	d := newDesk(t, DefaultParams(4))
	d.core.Step(0, Arrived{Job: 1})
	kept := 0.0
	const bursts = 600
	for range bursts {
		d.looks(1, 0.5, 0.15)
		d.looks(4, 0.5, 0)
		kept += float64(d.core.Reserved()) / bursts
	}
	if kept > 0.3 || d.core.Vain() == 0 {
		t.Errorf("%.2f cores were reserved, %d times for nothing", kept, d.core.Vain())
	}
}

// TestAWaitThatFallsByItselfIsNoMerit lets a wait fall to a quarter a moment after a freeze.
func TestAWaitThatFallsByItselfIsNoMerit(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.8), Freeze{1})
	d.looks(50, 0.5, 0.2)
	d.expect(d.looks(60, 0.5, 0.2))
	if d.core.Frozen() != 0 || d.core.Vain() != 1 {
		t.Errorf("%d frozen, %d verdicts", d.core.Frozen(), d.core.Vain())
	}
}

// TestWaitsThatFollowTheLoadAreNotBatchs has a load that changes from one second to the next, and waits
// that change with it. Batch has no part in them.
func TestWaitsThatFollowTheLoadAreNotBatchs(t *testing.T) {
	for _, cores := range []int{2, 4, 16} {
		frozen, kept := 0.0, 0.0
		const seeds, seconds = 10, 600
		for seed := range uint64(seeds) {
			r := rand.New(rand.NewPCG(seed, 49))
			d := newDesk(t, DefaultParams(cores))
			for id := range JobID(4) {
				d.core.Step(0, Arrived{Job: id, Threads: 1})
			}
			for range seconds {
				load := 0.05 + 1.15*r.Float64()
				for range 10 {
					d.looks(1, load, 0.4*math.Pow(load, 0.7))
					frozen += float64(d.core.Frozen()) / 4 / seeds / seconds / 10
					kept += float64(d.core.Reserved()) / float64(cores) / seeds / seconds / 10
				}
			}
		}
		if frozen > 0.1 || kept > 0.12 {
			t.Errorf("%d cores: %.3f of the jobs frozen, %.3f of the cores kept", cores, frozen, kept)
		}
	}
}

// TestNothingWaitsInAProbe: there is no verdict where there is no wait.
func TestNothingWaitsInAProbe(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.8), Freeze{1})
	d.looks(30, 0.5, 0.2)
	d.looks(20, 0.5, 0.01)
	d.expect(d.looks(4, 0.5, 0.8), Freeze{1})
	if d.core.Vain() != 0 {
		t.Errorf("%d verdicts", d.core.Vain())
	}
}

// TestNothingElseReturnsInAProbe: work waits in one look only when a probe begins, and has not waited for a
// second in the middle of it.
func TestNothingElseReturnsInAProbe(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.4), Freeze{1})
	d.looks(29, 0.5, 0.1)
	d.expect(d.looks(1, 0.5, 0.1))            // a probe begins
	d.expect(d.looks(5, 0.5, 0), Thaw{1})     // nothing waits while it is frozen
	d.expect(d.looks(5, 0.5, 0.4), Freeze{1}) // and much while it is not
	d.expect(d.looks(5, 0.5, 0), Thaw{1})     // again
	d.expect(d.looks(5, 0.5, 0.4), Freeze{1}) // so it helps
	if d.core.Vain() != 0 {
		t.Errorf("%d verdicts that it does not help", d.core.Vain())
	}
	d = newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	d.expect(d.looks(4, 0.5, 0.4), Freeze{1})
	d.looks(30, 0.5, 0.1)
	d.expect(d.looks(5, 0.5, 0), Thaw{1})
	d.expect(d.looks(20, 0.5, 0)) // nothing waits without it either: it stays
}

// TestWhatIsNotEnoughIsNotInVain: more is asked of the work from the beginning of a probe on, so that the one
// core that is reserved helps no more, while two would.
func TestWhatIsNotEnoughIsNotInVain(t *testing.T) {
	d := newDesk(t, DefaultParams(4))
	d.core.Step(0, Arrived{Job: 1, Threads: 4})
	d.expect(d.looks(1, 0.5, 0.06), Place{1, Cores{1, 3}})
	for range 15 { // now and then it waits a little too long, and a probe begins
		d.expect(d.looks(1, 0.5, 0.021))
		d.expect(d.looks(1, 0.5, 0.019))
	}
	d.expect(d.looks(5, 1, 0.058), Place{1, Cores{0, 4}})
	d.expect(d.looks(5, 1, 0.06), Place{1, Cores{1, 3}})
	d.expect(d.looks(5, 1, 0.058), Place{1, Cores{0, 4}})
	d.expect(d.looks(5, 1, 0.06), Place{1, Cores{1, 3}})
	d.expect(d.looks(1, 1, 0.058), Place{1, Cores{2, 2}})
	if d.core.Vain() != 0 {
		t.Errorf("%d verdicts that it does not help", d.core.Vain())
	}
}

// restOf counts looks until a job is frozen again.
func restOf(d *desk, load, wait float64) int {
	for n := range 3000 {
		if d.core.Frozen() > 0 {
			return n
		}
		d.looks(1, load, wait)
	}
	return 3000
}

func TestRestsGetLongerUpToABound(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	d.core.Step(0, Arrived{Job: 1})
	var rests []int
	for range 7 {
		rests = append(rests, restOf(d, 0.5, 0.1)/10)
		d.looks(10, 0.5, 0.1) // all is frozen for half a second, and given back for as long
		d.looks(10, 0.5, 0.1) // and both again
	}
	if want := []int{0, 10, 20, 40, 80, 120, 120}; !equalInts(rests, want) {
		t.Errorf("rests of %v s, want %v", rests, want)
	}
}

func equalInts(a, b []int) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestANewCauseEndsARest(t *testing.T) {
	for name, tt := range map[string]struct {
		load, wait float64
		ends       bool
	}{
		"the same":         {0.5, 0.1, false},
		"a little more":    {0.7, 0.15, false},
		"twice the wait":   {0.5, 0.25, true},
		"half the wait":    {0.5, 0.04, true},
		"nearly no waits":  {0.5, 0.021, true},
		"twice the usage":  {1.2, 0.1, false},
		"half the usage":   {0.2, 0.1, false},
		"twice of both":    {1.2, 0.25, false}, // more is asked, and each waits as before
		"half of both":     {0.2, 0.04, false},
		"less is asked":    {0.2, 0.25, true}, // and it waits longer
		"nothing is asked": {0.01, 0.1, false},
	} {
		d := newDesk(t, DefaultParams(2))
		d.core.Step(0, Arrived{Job: 1})
		d.looks(24, 0.5, 0.1)
		if d.core.Vain() != 1 {
			t.Fatal("there is no verdict")
		}
		// Ten seconds of rest: a new cause ends it after a quarter at the earliest.
		if got := restOf(d, tt.load, tt.wait) < 50; got != tt.ends {
			t.Errorf("%s: ends the rest early: %v, want %v", name, got, tt.ends)
		}
		d = newDesk(t, DefaultParams(2))
		d.core.Step(0, Arrived{Job: 1})
		d.looks(24, 0.5, 0.1)
		if n := restOf(d, tt.load, tt.wait); n < 25 {
			t.Errorf("%s: batch was kept back again after %d looks of a rest of 100", name, n)
		}
	}
}

// TestStepsGetLargerWhileNothingHelps freezes 1, 2, 4 and 8 jobs, and one at a time where each helps.
func TestStepsGetLargerWhileNothingHelps(t *testing.T) {
	d := newDesk(t, DefaultParams(2))
	for id := range JobID(20) {
		d.core.Step(0, Arrived{Job: id})
	}
	frozen := func(wait float64, looks int) int { d.looks(looks, 0.5, wait); return d.core.Frozen() }
	for i, step := range []struct {
		wait  float64
		looks int
		want  int
	}{{0.8, 4, 1}, {0.8, 3, 3}, {0.8, 3, 7}, {0.4, 3, 8}, {0.2, 3, 9}, {0.2, 3, 11}} {
		if got := frozen(step.wait, step.looks); got != step.want {
			t.Errorf("after step %d %d jobs are frozen, want %d", i, got, step.want)
		}
	}
}

func TestWithoutJudgementStepsStay(t *testing.T) {
	p := DefaultParams(2)
	p.JudgeFor = 0
	w := world{params: p, jobs: 3, elsewhere: always(0.3), batch: always(0), load: 0.7}
	if out := w.run(t, 1, 3000); out.frozen < 0.9 || out.vain > 0 {
		t.Errorf("%.2f are frozen, %d times for nothing", out.frozen, out.vain)
	}
}
