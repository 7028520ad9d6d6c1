package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACopyIsComparedWithItsOriginal(t *testing.T) {
	got := Compare(SetOf("kept", "gone"), SetOf("kept", "unknown"))
	want := Difference[string]{Gone: SetOf("gone"), Unknown: SetOf("unknown")}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Difference[string]{}, Compare(SetOf("a", "b"), SetOf("b", "a"))); diff != "" {
		t.Errorf("equal sets differ: %s", diff)
	}
}

func TestWhatTwoSuccessiveLooksFindStands(t *testing.T) {
	gone := func(keys ...string) Difference[string] { return Difference[string]{Gone: SetOf(keys...)} }
	unknown := func(keys ...string) Difference[string] { return Difference[string]{Unknown: SetOf(keys...)} }
	var level Level[string]
	for i, look := range []struct{ finds, stands Difference[string] }{
		{gone("a", "b"), Difference[string]{}},
		{gone("b", "c"), gone("b")},
		{gone("b"), gone("b")}, // nobody mended it
		{Difference[string]{}, Difference[string]{}},
		{gone("b"), Difference[string]{}}, // news again
		{unknown("b"), Difference[string]{}},
		{unknown("b"), unknown("b")},
	} {
		if diff := cmp.Diff(look.stands, level.Look(look.finds)); diff != "" {
			t.Errorf("look %d: %s", i, diff)
		}
	}
}
