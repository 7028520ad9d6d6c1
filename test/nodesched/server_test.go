package main

import (
	"testing"
	"time"
)

func TestATimerIsOnTime(t *testing.T) {
	wake, err := newDueTimer()
	if err != nil {
		t.Fatal(err)
	}
	defer wake.timer.Stop()
	for _, after := range []time.Duration{5 * ms, -ms, 0, 5 * ms} {
		at := time.Now().Add(after)
		wake.sleepUntil(at)
		if time.Now().Before(at) {
			t.Errorf("it rang before %s had passed", after)
		}
	}
}
