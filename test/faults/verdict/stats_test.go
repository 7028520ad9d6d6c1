package verdict_test

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

func TestQuantiles(t *testing.T) {
	values := []time.Duration{40, 10, 30, 20}
	for q, want := range map[float64]time.Duration{0: 10, 0.25: 10, 0.26: 20, 0.5: 20, 0.99: 40, 1: 40} {
		if got := verdict.Quantile(values, q); got != want {
			t.Errorf("quantile %v is %v, want %v", q, got, want)
		}
	}
	if values[0] != 40 {
		t.Error("the values were sorted in place")
	}
	if got := verdict.Quantile(nil, 0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
}

func TestStallAndGap(t *testing.T) {
	good := func(began, ended int64) verdict.Call {
		return verdict.Call{Status: 200, Executed: verdict.Yes, Began: began, Ended: ended}
	}
	calls := []verdict.Call{good(0, 50), good(10, 15), good(20, 45), {Status: 503, Executed: verdict.No, Began: 21, Ended: 99}, good(60, 61)}
	if got := verdict.Stall(calls, 10, 60); got != 25 {
		t.Errorf("the stall is %d, want 25: the longest of the successes that began in the time", got)
	}
	if got := verdict.FirstSuccess(calls, 12, 60); got != 33 {
		t.Errorf("the first success comes after %d, want 33: at 45", got)
	}
	if got := verdict.FirstSuccess(calls, 30, 60); got != 30 {
		t.Errorf("the first success comes after %d, want 30: there is none", got)
	}
	if got := verdict.Gap(calls, 10, 60); got != 30 {
		t.Errorf("the gap is %d, want 30: from 15 to 45", got)
	}
	if got := verdict.Gap(nil, 10, 60); got != 50 {
		t.Errorf("the gap is %d, want 50: all of it", got)
	}
}
