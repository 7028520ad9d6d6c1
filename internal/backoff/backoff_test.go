package backoff

import (
	"slices"
	"testing"
	"time"
)

func TestPausesDoubleUntilTheLast(t *testing.T) {
	b := Backoff{First: 200, Last: 1500}
	take := func(n int) (pauses []time.Duration) {
		for range n {
			pauses = append(pauses, b.Next())
		}
		return pauses
	}
	if got := take(5); !slices.Equal(got, []time.Duration{200, 400, 800, 1500, 1500}) {
		t.Errorf("pauses %v", got)
	}
	b.Reset()
	if got := take(2); !slices.Equal(got, []time.Duration{200, 400}) {
		t.Errorf("after a success, pauses %v", got)
	}
}

func TestChanceTakesUpToHalfOfAPause(t *testing.T) {
	least, most := time.Hour, time.Duration(0)
	for range 10_000 {
		d := Jitter(1000)
		least, most = min(least, d), max(most, d)
	}
	if least <= 500 || least > 550 || most > 1000 || most < 950 {
		t.Errorf("pauses of %d to %d, of 1000", least, most)
	}
}
