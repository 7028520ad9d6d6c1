package main

import (
	"slices"
	"testing"
	"time"
)

func TestThePlatformIsWhatCallsTakeBesideTheirWork(t *testing.T) {
	micros := func(n int) time.Duration { return time.Duration(n) * time.Microsecond }
	results := []result{
		{due: ms, began: 3 * ms, exec: 50 * ms, turnaround: 52*ms + micros(300), early: micros(200), read: micros(100)},
		{due: 90 * ms, began: 91 * ms, exec: micros(10), turnaround: ms + micros(410), early: micros(100), read: micros(100)},
	}
	got := newPlatform(results)
	if want := (platform{before: micros(1400), after: micros(350), early: micros(150), slice: got.slice}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got.slice < 100*time.Microsecond || got.slice > 100*ms {
		t.Errorf("the kernel's slice is %s", got.slice)
	}
}

func TestCallsThatMeasureThePlatformComeAsInTheTrace(t *testing.T) {
	of, err := newTrace("azure", 1, .95, 8*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(of.calls)
	for i, c := range withoutWork(of).calls {
		if c.cpu != 0 || c.at != of.calls[i].at || c.function != of.calls[i].function || c.sleep > 50*ms {
			t.Errorf("%+v is made for %+v", c, of.calls[i])
		}
	}
	if !slices.Equal(before, of.calls) {
		t.Error("the trace has changed")
	}
}

// The model adds the platform to the turnaround, and keeps the core for as long as a call's processor time says.
func TestTheModelAddsThePlatform(t *testing.T) {
	of := trace{calls: []call{{at: 0, function: "f", cpu: 10 * ms}, {at: 10 * ms, function: "f", cpu: 10 * ms, sleep: 50 * ms}}}
	on := platform{before: 2 * ms, after: ms, early: ms, slice: 20 * ms}
	for _, name := range []string{"off", "sfs", "fifo", "serpt"} {
		p, err := policyByName(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := predict(p, of, on)
		if want := []time.Duration{12 * ms, 62 * ms}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
}
