package sim

import (
	"testing"
	"time"
)

func TestALinkThatIsSlowOrLossyHasTwoEnds(t *testing.T) {
	config := Default(1)
	config.Faults = 0
	w := newWorld(config, nil)
	w.populate()
	for range 200 {
		w.chaos.slowLink()
		w.chaos.loseMessages()
	}
	for machine := range w.net.blocked {
		if w.net.slow[machine][machine] != 0 || w.net.lossy[machine][machine] != 0 {
			t.Errorf("machine %d has a bad link to itself", machine)
		}
	}
}

func TestTheClockOfTheControllerJumpsAndIsSetRight(t *testing.T) {
	w := newWorld(Default(1), nil)
	right := w.controllerNow()
	setRight, struck := functionFaults{w}.jumpClock()
	if wrong := w.controllerNow().Sub(right).Abs(); !struck || wrong == 0 || wrong > 2*time.Hour {
		t.Errorf("struck %v, and the clock is wrong by %v", struck, wrong)
	}
	if _, again := (functionFaults{w}).jumpClock(); again {
		t.Error("it jumps again before it is right")
	}
	if setRight(); !w.controllerNow().Equal(right) {
		t.Error("it is not set right")
	}
}
