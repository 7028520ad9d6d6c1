package kube

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func take(t *testing.T, q *fairQueue[string], now time.Time) []string {
	t.Helper()
	var assigned []string
	for {
		_, item, ok, _ := q.pop(now)
		if !ok {
			return assigned
		}
		assigned = append(assigned, item)
	}
}

func TestFlowsTakeTurns(t *testing.T) {
	q := newFairQueue[string](100)
	for _, item := range []string{"a1", "a2", "a3", "b1", "c1", "c2"} {
		q.push(item[:1], item)
	}
	got := take(t, q, epoch)
	if want := []string{"a1", "b1", "c1", "a2", "c2", "a3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAFlowTakesNoMoreThanItsWidth(t *testing.T) {
	q := newFairQueue[string](2)
	for _, item := range []string{"a1", "a2", "a3", "b1"} {
		q.push(item[:1], item)
	}
	if got, want := take(t, q, epoch), []string{"a1", "b1", "a2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	q.done("a")
	if got, want := take(t, q, epoch), []string{"a3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAFlowThatWaitsHoldsNobodyUp(t *testing.T) {
	q := newFairQueue[string](2)
	q.push("a", "a1")
	q.push("a", "a2")
	q.push("b", "b1")
	flow, item, _, _ := q.pop(epoch)
	q.done(flow)
	q.pushBack(flow, item, epoch.Add(time.Second))
	if got, want := take(t, q, epoch), []string{"b1"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, _, ok, wait := q.pop(epoch); ok || wait != time.Second {
		t.Errorf("waits %v, want 1s", wait)
	}
	if got, want := take(t, q, epoch.Add(time.Second)), []string{"a1", "a2"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The API server may ask for a pause, and another request of the same function may need a short
// one only.
func TestAFlowWaitsForTheLongestPause(t *testing.T) {
	q := newFairQueue[string](2)
	q.push("a", "a1")
	q.push("a", "a2")
	take(t, q, epoch)
	q.pushBack("a", "a1", epoch.Add(3*time.Second))
	q.pushBack("a", "a2", epoch.Add(time.Second))
	q.done("a")
	q.done("a")
	if _, item, ok, wait := q.pop(epoch.Add(time.Second)); ok || wait != 2*time.Second {
		t.Errorf("took %q, or waits %v, want 2s", item, wait)
	}
}

// Whatever is pushed is taken or removed once, and nothing is left of it.
func TestNothingIsLostOrLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newFairQueue[int](rapid.IntRange(1, 3).Draw(t, "width"))
		in, out := map[int]string{}, map[int]string{}
		next, now := 0, epoch
		flow := rapid.SampledFrom([]string{"a", "b", "c"})
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				name := flow.Draw(t, "flow")
				q.push(name, next)
				in[next] = name
				next++
			},
			"pop": func(t *rapid.T) {
				name, item, ok, wait := q.pop(now)
				if !ok {
					now = now.Add(wait)
					return
				}
				if in[item] != name {
					t.Fatalf("%d came from flow %s, want %q", item, name, in[item])
				}
				delete(in, item)
				out[item] = name
			},
			"done": func(*rapid.T) {
				for item, name := range out {
					delete(out, item)
					q.done(name)
					return
				}
			},
			"back": func(t *rapid.T) {
				for item, name := range out {
					delete(out, item)
					in[item] = name
					q.pushBack(name, item, now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause"))*time.Second))
					q.done(name)
					return
				}
			},
			"remove": func(t *rapid.T) {
				for item, name := range in {
					if !q.remove(name, item) {
						t.Fatalf("%d was not there", item)
					}
					delete(in, item)
					return
				}
			},
			"": func(t *rapid.T) {
				if q.size != len(in) {
					t.Fatalf("holds %d, want %d", q.size, len(in))
				}
				if len(in)+len(out) == 0 && (len(q.flows) != 0 || len(q.rotation) != 0) {
					t.Fatalf("%d flows and %d turns are left", len(q.flows), len(q.rotation))
				}
			},
		})
	})
}
