package verdict_test

import (
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

func TestEpochsMayRiseAndStay(t *testing.T) {
	seen := []verdict.Epoch{
		{Observer: "a", Slot: 1, Epoch: 5, At: 1},
		{Observer: "a", Slot: 1, Epoch: 5, At: 2},
		{Observer: "b", Slot: 1, Epoch: 3, At: 3},
		{Observer: "a", Slot: 2, Epoch: 1, At: 3},
		{Observer: "a", Slot: 1, Epoch: 9, At: 4},
		{Observer: "b", Slot: 1, Epoch: 9, At: 4},
	}
	if n := verdict.IllegalEpochs(seen); n != 0 {
		t.Errorf("%d histories are refused", n)
	}
}

func TestAnEpochThatFallsIsCaught(t *testing.T) {
	seen := []verdict.Epoch{
		{Observer: "a", Slot: 1, Epoch: 5, At: 1},
		{Observer: "a", Slot: 1, Epoch: 9, At: 2},
		{Observer: "a", Slot: 1, Epoch: 5, At: 3},
		{Observer: "b", Slot: 1, Epoch: 9, At: 3},
		{Observer: "b", Slot: 2, Epoch: 4, At: 4},
		{Observer: "b", Slot: 2, Epoch: 3, At: 4},
	}
	if n := verdict.IllegalEpochs(seen); n != 2 {
		t.Errorf("%d histories are refused, want 2", n)
	}
}
