package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/provisioner/warmpool"
)

func TestEachHearsOfAFunctionInOrder(t *testing.T) {
	w := newWorld(Default(1), nil)
	one, other := w.newFunction(0), w.newFunction(1)
	a, b := w.newNode("a", 0, 1), w.newNode("b", 0, 2)
	a.start(&recorder{})
	b.start(&recorder{})
	var said []any
	for i := range 50 {
		for _, fn := range []*function{one, other} {
			functionFaults{w}.eachHears([]*node{a, b}, fn, func(p program) {
				p.(*recorder).take([2]int{fn.index, i})
			})
			said = append(said, [2]int{fn.index, i})
		}
		w.until(w.now + time.Millisecond)
	}
	w.until(w.now + time.Second)
	for _, n := range []*node{a, b} {
		heard := n.program.(*recorder).took
		for _, fn := range []*function{one, other} {
			others := func(change any) bool { return change.([2]int)[0] != fn.index }
			got, want := slices.DeleteFunc(slices.Clone(heard), others), slices.DeleteFunc(slices.Clone(said), others)
			if !slices.Equal(got, want) {
				t.Errorf("%s hears of function %d: %v", n.name, fn.index, got)
			}
		}
		if slices.Equal(heard, said) {
			t.Errorf("%s hears of two functions in one order, which nothing promises", n.name)
		}
	}
}

func TestASpareInstanceThatNeverStartsIsCollected(t *testing.T) {
	w := newWorld(Default(1), nil)
	unit := w.newPoolUnit("s1")
	never := &instance{cid: "00000001-000001", fn: unit}
	runs := &instance{cid: "00000001-000002", fn: unit, node: w.newNode("i", 0, 1)}
	w.platform.instances = []*instance{never, runs}
	late := warmpool.LeaveBy(start, startupTimeout)
	if never.leftOver(late.Add(-time.Nanosecond)) {
		t.Error("it is collected while it may still start")
	}
	w.uncontrolled = true
	if never.leftOver(late) {
		t.Error("it is collected while the controller is away")
	}
	w.uncontrolled = false
	if !never.leftOver(late) || runs.leftOver(late) {
		t.Errorf("of one that does not start and one that runs, left over are %v and %v", never.leftOver(late), runs.leftOver(late))
	}
}
