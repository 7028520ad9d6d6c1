package coldstart

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// at is so many milliseconds after noon; the zero time for never.
func at(ms int) time.Time {
	if ms == never {
		return time.Time{}
	}
	return noon.Add(time.Duration(ms) * time.Millisecond)
}

const never = -1 << 20

func moments(ms ...int) Moments {
	return Moments{
		Wanted: at(ms[0]), Launched: at(ms[1]), Created: at(ms[2]), Sandboxed: at(ms[3]),
		Began: at(ms[4]), Ready: at(ms[5]), Hello: at(ms[6]), Served: at(ms[7]),
	}
}

func TestPhasesOfAStart(t *testing.T) {
	ms := time.Millisecond
	for name, tc := range map[string]struct {
		m    Moments
		want Durations
	}{
		"all is known": {moments(0, 10, 30, 130, 230, 630, 650, 651),
			Durations{10 * ms, 20 * ms, 100 * ms, 100 * ms, 400 * ms, 20 * ms, ms}},
		"no call waited": {moments(never, 10, 30, 130, 230, 630, 650, 651),
			Durations{0, 20 * ms, 100 * ms, 100 * ms, 400 * ms, 20 * ms, ms}},
		"a process, which has no sandbox": {moments(0, 10, 30, never, 60, 260, 261, 262),
			Durations{10 * ms, 20 * ms, 0, 30 * ms, 200 * ms, ms, ms}},
		"nothing is known of what was before the hello": {moments(0, 10, never, never, never, never, 500, 501),
			Durations{10 * ms, 0, 0, 0, 0, 490 * ms, ms}},
		"the agent said hello before the function was ready": {moments(0, 0, 20, 120, 220, 900, 240, 901),
			Durations{0, 20 * ms, 100 * ms, 100 * ms, 680 * ms, 0, ms}},
		"a spare instance, whose agent began long before": {moments(0, 5, 25, never, -9000, 125, 60, 126),
			Durations{5 * ms, 20 * ms, 0, 0, 100 * ms, 0, ms}},
		"an agent that tells of the future": {moments(0, 10, 30, 130, 9000, 9999, 650, 651),
			Durations{10 * ms, 20 * ms, 100 * ms, 521 * ms, 0, 0, 0}},
		"wanted after it was launched": {moments(50, 10, 30, 40, 50, 60, 70, 80),
			Durations{0, 20 * ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms}},
	} {
		if diff := cmp.Diff(tc.want, tc.m.Phases()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Whatever is told, phases are contiguous, never negative, and add up.
func TestPhasesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := rapid.OneOf(rapid.IntRange(-1000, 1000), rapid.Just(never))
		known := rapid.IntRange(0, 1000)
		ms := rapid.SliceOfN(moment, 8, 8).Draw(t, "moments")
		ms[1], ms[7] = known.Draw(t, "launched"), known.Draw(t, "served")
		m := moments(ms...)
		bounds, phases := m.Bounds(), m.Phases()
		if first := bounds[0]; first.After(m.Launched) || !first.Equal(m.Wanted) && !first.Equal(m.Launched) {
			t.Fatalf("it begins at %v", first)
		}
		if last := bounds[NumPhases]; last.Before(m.Served) || last.After(m.Served) && !m.Served.Before(bounds[0]) {
			t.Fatalf("it ends at %v, and was served at %v", last, m.Served)
		}
		total := time.Duration(0)
		for phase, took := range phases {
			if took < 0 || !bounds[phase].Add(took).Equal(bounds[phase+1]) {
				t.Fatalf("%s took %v from %v until %v", Phase(phase), took, bounds[phase], bounds[phase+1])
			}
			total += took
		}
		if whole := bounds[NumPhases].Sub(bounds[0]); total != whole || phases.Total() != whole {
			t.Fatalf("the phases take %v, the whole %v", total, whole)
		}
	})
}

// What is known and in order is not changed.
func TestMomentsInOrderAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := make([]int, 8)
		for i := range ms {
			ms[i] = rapid.IntRange(0, 100).Draw(t, "step")
			if i > 0 {
				ms[i] += ms[i-1]
			}
		}
		for i, bound := range moments(ms...).Bounds() {
			if !bound.Equal(at(ms[i])) {
				t.Fatalf("moment %d of %v became %v", i, ms, bound)
			}
		}
	})
}

func TestPhasesHaveNames(t *testing.T) {
	seen := map[string]bool{"": true}
	for phase := range NumPhases {
		if seen[phase.String()] {
			t.Errorf("phase %d is called %q, as another one", int(phase), phase)
		}
		seen[phase.String()] = true
	}
	sum := Durations{Create: time.Second}.Plus(Durations{Create: time.Second, Ready: time.Minute})
	if sum != (Durations{Create: 2 * time.Second, Ready: time.Minute}) {
		t.Errorf("the sum is %v", sum)
	}
}
