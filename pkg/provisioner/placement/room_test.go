package placement

import (
	"testing"

	"pgregory.net/rapid"
)

// There is room for as many as can be placed one by one.
func TestRoomIsHowManyCanBePlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(label string, least, most int64) Amount {
			return Amount{
				MilliCPU: rapid.Int64Range(least, most).Draw(t, label+" cpu"),
				Memory:   rapid.Int64Range(least, most).Draw(t, label+" memory"),
				Pods:     rapid.Int64Range(least, most).Draw(t, label+" pods"),
				// Few have these.
				Further: FurtherOf(map[string]int64{
					"a.b/c": max(0, rapid.Int64Range(-most, most).Draw(t, label+" c")),
					"d.e/f": max(0, rapid.Int64Range(-most, most).Draw(t, label+" f")),
				}),
			}
		}
		var nodes []Node
		for range rapid.IntRange(0, 4).Draw(t, "nodes") {
			nodes = append(nodes, Node{Allocatable: amount("allocatable", 0, 40), Requested: amount("requested", 0, 50)})
		}
		want := amount("want", 0, 9)
		if want == (Amount{}) {
			want.Pods = 1
		}
		got := Room(nodes, want)
		placed := 0
		for {
			i := pick(nodes, want, func(int) int { return 0 })
			if i < 0 {
				break
			}
			nodes[i].Requested = nodes[i].Requested.Plus(want)
			placed++
		}
		if got != placed {
			t.Fatalf("there is room for %d, and %d could be placed", got, placed)
		}
	})
}

func TestWhoRequestsNothingHasPlentyOfRoom(t *testing.T) {
	if got := Room([]Node{{}, {Requested: Amount{MilliCPU: 1}}}, Amount{}); got != plenty {
		t.Errorf("got %d, want %d, for the second node has more requested than it has", got, plenty)
	}
}
