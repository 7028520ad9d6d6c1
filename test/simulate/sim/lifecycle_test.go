package sim

import (
	"slices"
	"testing"
	"time"
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
