package cluster

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/schedule"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// A call every half an hour, 40 times. With fixed times the last instance stays all
// the time. Once the idle times are learnt, it goes soon after each call, and another
// one is there before the next.
func TestLearntIdleTimesKeepOnlyWhatIsNeeded(t *testing.T) {
	var calls Given
	for i := range 40 {
		calls = append(calls, Call{At: time.Duration(i)*30*time.Minute + 30*time.Second, Work: OwnWork})
	}
	c := Config{
		Length:    20 * time.Hour,
		Functions: []Function{{Work: Fixed(time.Second), Start: Fixed(2 * time.Second)}},
		Loads:     []Load{calls},
		Decider:   autoscaler.FPCSch,
	}
	fixed := run(t, c).Total
	if fixed.Cold != 1 || fixed.Created != 1 || fixed.Idle < 19*time.Hour {
		t.Errorf("with fixed times: %d cold, %d created, idle for %v", fixed.Cold, fixed.Created, fixed.Idle)
	}
	c.Functions[0].Learns = true
	learnt := run(t, c).Total
	if learnt.Cold != 1 || learnt.Created < 20 || learnt.Idle > fixed.Idle/2 {
		t.Errorf("with learnt times: %d cold, %d created, idle for %v", learnt.Cold, learnt.Created, learnt.Idle)
	}
}

// A window from 01:00 to 02:00 has two instances, and nobody calls.
func TestWindowsHaveInstances(t *testing.T) {
	start, err := schedule.ParseStart("0 1 * * *")
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, Config{
		Length: 12 * time.Hour,
		Functions: []Function{{
			Start: Fixed(2 * time.Second), IdleTimeout: 10 * time.Minute,
			Windows: []schedule.Window{{Start: start, Zone: time.UTC, Duration: time.Hour, Min: 2}},
		}},
		Decider: autoscaler.FPCSch, Resolution: 15 * time.Minute,
	})
	for _, p := range r.Series {
		want := -1
		switch {
		case p.At < time.Hour:
			want = 0
		case p.At > time.Hour && p.At < 2*time.Hour:
			want = 2
		case p.At >= 4*time.Hour:
			want = 0
		}
		if want >= 0 && p.Instances != want {
			t.Errorf("at %v there were %d instances, want %d", p.At, p.Instances, want)
		}
	}
	if r.Total.Created != 2 {
		t.Errorf("created %d, want 2", r.Total.Created)
	}
}

// Callers that lose patience are forgotten, and those that call again are served.
func TestCallersLosePatience(t *testing.T) {
	r := run(t, Config{
		Functions: []Function{{Work: Fixed(time.Second), Start: Fixed(2 * time.Second), Patience: time.Second}},
		Loads:     []Load{at(0, 0, 0, 1500*ms, 1500*ms, 1500*ms)},
		Decider:   FixedPool(1),
	})
	// The first three give up at 1 s. The instance is ready at 2 s: one is run at
	// once, and the two others would come too late.
	if got := r.Total; got.Expired != 5 || got.Answered != 1 || got.Open != 0 {
		t.Errorf("got %+v", got)
	}
}
