package gateway

import (
	"fmt"
	"math"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// weighed are routes of those weights. The unit of the first has the UID 0, and so on.
func weighed(weights ...int32) []rollout.Route {
	var routes []rollout.Route
	for i, weight := range weights {
		unit := &v1alpha1.Function{}
		unit.UID = types.UID(fmt.Sprint(i))
		routes = append(routes, rollout.Route{Tag: "tag-" + fmt.Sprint(i), Weight: weight, Unit: unit})
	}
	return routes
}

// Numbers at equal distances take the place of all that can be drawn.
func TestEachUnitGetsExactlyItsShareOfWhatCanBeDrawn(t *testing.T) {
	for _, weights := range [][]int32{{100}, {90, 10}, {1, 99}, {0, 100}, {100, 0}, {33, 33, 34}, {0, 50, 0, 50}, {20, 20}} {
		all := int32(0)
		for _, weight := range weights {
			all += weight
		}
		routes, got := weighed(weights...), make(map[types.UID]int32)
		for n := range uint64(all) {
			// The first and the last number of the nth part.
			got[(&rollout.Entry{Routes: routes}).Pick(uint32((n<<32+uint64(all)-1)/uint64(all))).UID]++
			got[(&rollout.Entry{Routes: routes}).Pick(uint32(((n+1)<<32-1)/uint64(all))).UID]++
		}
		for i, weight := range weights {
			if n := got[routes[i].Unit.UID]; n != 2*weight {
				t.Errorf("of %v, %d has %d of %d", weights, i, n, 2*all)
			}
		}
	}
}

// Dice would be further off than 0.3 % once in 700 times.
func TestSharesOfCalls(t *testing.T) {
	const calls = 100_000
	e := &rollout.Entry{Function: &v1alpha1.Function{}, Routes: weighed(90, 10)}
	for range 20 { // each of which begins elsewhere
		small, picker := 0, newPicker()
		for range calls {
			if unit, _ := picker.pick(e, ""); unit == e.Routes[1].Unit {
				small++
			}
		}
		if off := small - calls/10; off < -5 || off > 5 {
			t.Fatalf("%d of %d calls went where 10 %% are to go", small, calls)
		}
	}
}

func TestACallWithATagTakesNoLotOfAnother(t *testing.T) {
	e, picker := &rollout.Entry{Function: &v1alpha1.Function{}, Routes: weighed(50, 50)}, newPicker()
	before := picker.nextDraw(e.UID())
	if _, p := picker.pick(e, "tag-0"); p != nil {
		t.Fatal(p)
	}
	if got := picker.nextDraw(e.UID()); got != before+rollout.DrawStep {
		t.Errorf("drew %d after %d", got, before)
	}
}

func TestNobodyIsPickedOfNoRoutes(t *testing.T) {
	for _, routes := range [][]rollout.Route{nil, weighed(0, 0)} {
		if unit := (&rollout.Entry{Routes: routes}).Pick(math.MaxUint32); unit != nil {
			t.Errorf("picked %s", unit.UID)
		}
	}
}

func TestACallIsAssignedByItsTagOrByWeight(t *testing.T) {
	fn := &v1alpha1.Function{}
	fn.Spec.Traffic = []v1alpha1.TrafficTarget{{Tag: "tag-0"}, {Tag: "tag-1"}, {Tag: "new"}}
	routed, bare := &rollout.Entry{Function: fn, Routes: weighed(100, 0)}, &rollout.Entry{Function: fn}
	for name, tc := range map[string]struct {
		e    *rollout.Entry
		tag  string
		want string
	}{
		"without a tag":                     {routed, "", "0"},
		"a tag":                             {routed, "tag-0", "0"},
		"a tag without weight":              {routed, "tag-1", "1"},
		"a tag that nobody has":             {routed, "other", "UnknownTag"},
		"a tag that will be there":          {routed, "new", "RevisionPending"},
		"without a tag, before a revision":  {bare, "", "RevisionPending"},
		"a tag, before a revision":          {bare, "tag-0", "RevisionPending"},
		"an unknown tag, before a revision": {bare, "other", "RevisionPending"},
	} {
		unit, p := newPicker().pick(tc.e, tc.tag)
		got := ""
		if unit != nil {
			got = string(unit.UID)
		}
		if p != nil {
			got += p.Reason
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
