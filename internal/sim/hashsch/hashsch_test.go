package hashsch

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSteps(t *testing.T) {
	for n, want := range map[int][]int{1: {1}, 2: {1}, 3: {1, 2}, 8: {1, 3, 5, 7}, 10: {1, 3, 7}, 9: {1, 2, 5, 7}} {
		if got := steps(n); !slices.Equal(got, want) {
			t.Errorf("steps(%d) are %v, want %v", n, got, want)
		}
	}
}

// With 8 workers of 6 slots and 3 controllers, each controller has 2 slots of each.
// A function of hash 5 has worker 5 as home, and steps[5%4] = 3.
func TestCallsStepOnWhenTheShareIsUsedUp(t *testing.T) {
	b := NewBalancer(8, 6, 3)
	noChance := func(int) int { t.Fatal("chance was asked"); return 0 }
	var got []int
	for range 5 {
		worker, forced := b.Place(5, noChance)
		if forced {
			t.Fatal("forced")
		}
		got = append(got, worker)
	}
	if want := []int{5, 5, 0, 0, 3}; !slices.Equal(got, want) {
		t.Errorf("placed on %v, want %v", got, want)
	}
	b.Release(5)
	if worker, _ := b.Place(5, noChance); worker != 5 {
		t.Errorf("placed on %d, want the home", worker)
	}
}

func TestOverloadIsForcedOnAnyWorker(t *testing.T) {
	b := NewBalancer(2, 1, 3) // a share of at least one
	b.Place(0, nil)
	b.Place(0, nil)
	worker, forced := b.Place(0, func(n int) int { return n - 1 })
	if worker != 1 || !forced {
		t.Errorf("placed on %d, forced %v; want 1, forced", worker, forced)
	}
	b.Release(1)
	if _, forced := b.Place(0, func(int) int { return 0 }); !forced {
		t.Error("the share of worker 1 is free after one of two calls")
	}
}

func TestMoreWorkersMoveHomes(t *testing.T) {
	b := NewBalancer(2, 3, 3)
	if worker, _ := b.Place(3, nil); worker != 1 {
		t.Errorf("placed on %d, want 1", worker)
	}
	b.Grow(4)
	if worker, _ := b.Place(3, nil); worker != 3 {
		t.Errorf("placed on %d, want 3", worker)
	}
}

// A worker of two slots and the functions 1, 2 and 3.
func TestWorker(t *testing.T) {
	w := NewWorker(2)
	expect := func(what string, s Start, ok bool, want Start) {
		t.Helper()
		if !ok || !reflect.DeepEqual(s, want) {
			t.Errorf("%s: %+v %v, want %+v", what, s, ok, want)
		}
	}
	wait := func(what string, ok bool) {
		t.Helper()
		if ok {
			t.Errorf("%s did not wait", what)
		}
	}
	s, ok := w.Push(Job{Function: 1})
	expect("the first", s, ok, Start{Job: Job{Function: 1}, Container: 0, Cold: true})
	s, ok = w.Push(Job{Function: 2})
	expect("the second", s, ok, Start{Job: Job{Function: 2}, Container: 1, Cold: true})
	_, ok = w.Push(Job{Function: 3})
	wait("the third", ok)
	_, ok = w.Push(Job{Function: 1})
	wait("the fourth", ok)
	w.Finish(0)
	s, ok = w.Resume() // in turn, though the fourth has a warm container
	expect("the third", s, ok, Start{Job: Job{Function: 3}, Container: 2, Cold: true, Evicted: true, Instead: 0})
	_, ok = w.Resume()
	wait("the fourth", ok)
	w.Finish(2)
	w.Finish(1)
	s, ok = w.Resume()
	expect("the fourth", s, ok, Start{Job: Job{Function: 1}, Container: 3, Cold: true, Evicted: true, Instead: 2})
	s, ok = w.Push(Job{Function: 2})
	expect("the fifth", s, ok, Start{Job: Job{Function: 2}, Container: 1})
	if w.Remove(1) {
		t.Error("a busy container was removed")
	}
	w.Finish(1)
	if !w.Remove(1) || w.Waiting() != 0 {
		t.Error("a warm container was not removed, or somebody waits")
	}
}

// A worker never has more containers than slots, and no job waits while it could
// start.
func TestWorkerKeepsWithinItsSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 5).Draw(t, "slots")
		w := NewWorker(slots)
		running := map[int]bool{}
		pushed, started := 0, 0
		note := func(s Start, ok bool) bool {
			if ok {
				running[s.Container] = true
				started++
			}
			return ok
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(running) == 0 || rapid.Bool().Draw(t, "push") {
				pushed++
				note(w.Push(Job{Function: rapid.IntRange(0, 3).Draw(t, "function")}))
			} else {
				numbers := make([]int, 0, len(running))
				for number := range running {
					numbers = append(numbers, number)
				}
				slices.Sort(numbers)
				number := rapid.SampledFrom(numbers).Draw(t, "finish")
				delete(running, number)
				w.Finish(number)
				for note(w.Resume()) {
				}
			}
			if w.containers > slots || w.containers != len(running)+len(w.warm) {
				t.Fatalf("%d containers, %d busy and %d warm, in %d slots", w.containers, len(running), len(w.warm), slots)
			}
			if started+w.Waiting() != pushed {
				t.Fatalf("%d started and %d wait of %d", started, w.Waiting(), pushed)
			}
			if w.Waiting() > 0 && len(running) < slots {
				t.Fatal("somebody waits for nothing")
			}
		}
	})
}
