package main

import (
	"slices"
	"testing"
)

// Runs of one length would have the same requests, and what was found with one seed would be measured with it.
func TestASeedDrawsTheRequests(t *testing.T) {
	rates := []float64{100, 2000, 700}
	draw := func(seed uint64, factor float64) (at []float64) {
		for step, when := range requestTimes(seed, rates, factor) {
			if when < float64(step) || when >= float64(step+1) {
				t.Errorf("a request of the step %d comes after %v s", step, when)
			}
			at = append(at, when)
		}
		return at
	}
	one := draw(3006, 1)
	if n := len(one); n < 2500 || n > 3100 {
		t.Errorf("%d requests, want about 2800", n)
	}
	if !slices.Equal(one, draw(3006, 1)) {
		t.Error("a seed has two sequences of requests")
	}
	if slices.Equal(one, draw(3007, 1)) {
		t.Error("two seeds have the same requests")
	}
	if n := len(draw(3006, 5)); n < 13000 || n > 15000 {
		t.Errorf("%d requests, want about 14000", n)
	}
}
