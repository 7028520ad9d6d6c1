package sim

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// pause is for how long a process runs, and then stands still.
type pause struct{ runs, stands time.Duration }

func TestWhoMustHaveNoticedItsPauseIsToOrderNothing(t *testing.T) {
	stands, runs := 2*core.PauseThreshold, 5*core.PauseHold
	for name, c := range map[string]struct {
		stills []pause
		must   bool
	}{
		"ran for long":                {[]pause{{runs, stands}}, true},
		"had just started":            {[]pause{{time.Millisecond, stands}}, false},
		"stood for too short a time":  {[]pause{{runs, core.PauseThreshold - time.Millisecond}}, false},
		"had held a moment ago":       {[]pause{{runs, stands}, {core.PauseHold / 2, stands}}, false},
		"may have held a moment ago":  {[]pause{{time.Millisecond, stands}, {core.PauseHold / 2, stands}}, false},
		"had held a long time before": {[]pause{{runs, stands}, {runs, stands}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(Default(1), nil)
			n := w.newNode("s1", 0, 1)
			n.clock = clock{rate: 1}
			n.start(&recorder{})
			for _, s := range c.stills {
				w.until(w.now + s.runs)
				n.pause()
				w.until(w.now + s.stands)
				n.resume()
			}
			if must := n.now().Before(n.silentUntil); must != c.must {
				t.Errorf("it must order nothing: %v, want %v", must, c.must)
			}
		})
	}
}
