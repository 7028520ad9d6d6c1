package main

import "testing"

// A node agent is cheapest on a node without sleeping calls and without batch, so the goal is for nodes with them as well.
func TestCostIsMeasuredWithSleepingCallsAndWithBatch(t *testing.T) {
	var busy costCase
	sleepers, fillers := 0, 0
	for _, c := range costCases {
		if c.name == "busy" {
			busy = c
		}
		if !c.busy {
			continue
		}
		sleepers, fillers = sleepers+c.sleepers, fillers+c.fillers
		if c.pods != busy.pods || c.mostCores != busy.mostCores || c.mostMemory != busy.mostMemory {
			t.Errorf("%+v is not comparable with %+v", c, busy)
		}
		if c.fillers+c.sleepers >= c.pods {
			t.Errorf("%s: nobody makes calls", c.name)
		}
	}
	if sleepers == 0 || fillers == 0 {
		t.Errorf("%d pods sleep, and %d are batch", sleepers, fillers)
	}
}
