package placement

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// further is an amount of one further resource.
func further(name string, n int64) Amount {
	return Amount{Scalars: ScalarsOf(map[string]int64{name: n})}
}

func TestFurtherAmountsAddUpAsNumbersDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := rapid.MapOf(rapid.SampledFrom([]string{"a.b/c", "a.b/d", "nvidia.com/gpu"}), rapid.Int64Range(-9, 9))
		a, b := amounts.Draw(t, "a"), amounts.Draw(t, "b")
		sum, difference := maps.Clone(a), maps.Clone(a)
		for name, n := range b {
			sum[name] += n
			difference[name] -= n
		}
		x, y := Amount{Scalars: ScalarsOf(a)}, Amount{Scalars: ScalarsOf(b)}
		if got, want := x.Plus(y).Scalars, ScalarsOf(sum); got != want {
			t.Fatalf("%v and %v are %v, want %v", x.Scalars, y.Scalars, got, want)
		}
		if got, want := x.Minus(y).Scalars, ScalarsOf(difference); got != want {
			t.Fatalf("%v without %v is %v, want %v", x.Scalars, y.Scalars, got, want)
		}
		maps.DeleteFunc(difference, func(_ string, n int64) bool { return n < 0 })
		if got, want := x.Beyond(y).Scalars, ScalarsOf(difference); got != want {
			t.Fatalf("%v exceeds %v by %v, want %v", x.Scalars, y.Scalars, got, want)
		}
		if back := x.Plus(y).Minus(y); back != x {
			t.Fatalf("%v plus and minus %v is %v", x.Scalars, y.Scalars, back.Scalars)
		}
	})
}

func TestAnInstanceGoesWhereItsDevicesAre(t *testing.T) {
	nodes := []Node{
		{Name: "none", Allocatable: Amount{MilliCPU: 1000}},
		{Name: "other", Allocatable: Amount{MilliCPU: 1000, Scalars: further("example.com/fpga", 8).Scalars}},
		{Name: "taken", Allocatable: Amount{MilliCPU: 1000, Scalars: further("nvidia.com/gpu", 2).Scalars}, Requested: further("nvidia.com/gpu", 1)},
		{Name: "right", Allocatable: Amount{MilliCPU: 1000, Scalars: further("nvidia.com/gpu", 4).Scalars}, Requested: further("nvidia.com/gpu", 2)},
	}
	site, want := NewSite(Candidates{Nodes: nodes}), Amount{MilliCPU: 1, Scalars: further("nvidia.com/gpu", 2).Scalars}
	if node, ok := site.Pick(want, func(int) int { return 0 }); node != "right" || !ok {
		t.Fatalf("it goes to %q", node)
	}
	site.Request("right", want)
	if node, ok := site.Pick(want, func(int) int { return 0 }); ok {
		t.Errorf("the next one goes to %q, where two devices are too few", node)
	}
	if _, ok := site.Pick(Amount{MilliCPU: 1}, func(int) int { return 0 }); !ok {
		t.Error("who wants no device finds no room")
	}
}
