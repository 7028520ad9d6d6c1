package workload

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Shape fits a trace to a machine and to a viewer's patience. Its steps are
// applied in the order of its fields; a field's zero value leaves the trace as
// it is.
type Shape struct {
	// Start is where the window begins, from the start of the trace, at
	// least 0.
	Start time.Duration
	// Length of the window, at least 0; 0 means up to the end.
	Length time.Duration
	// KeepOneIn keeps the first call of each function and then every
	// KeepOneIn-th of it, so that no function disappears; at least 0.
	KeepOneIn int
	// TimeFactor divides the times between calls; more than 0 if given.
	TimeFactor float64
	// DurationFactor divides the durations; more than 0 if given.
	DurationFactor float64
	// MaxDuration is what longer durations are cut to, at least 0. It
	// applies after DurationFactor.
	MaxDuration time.Duration
}

// Validate reports a field that is out of range.
func (s Shape) Validate() error {
	switch {
	case s.Start < 0:
		return fmt.Errorf("workload: Start is %v; it must be at least 0", s.Start)
	case s.Length < 0:
		return fmt.Errorf("workload: Length is %v; it must be at least 0", s.Length)
	case s.KeepOneIn < 0:
		return fmt.Errorf("workload: KeepOneIn is %d; it must be at least 0", s.KeepOneIn)
	case !isFactor(s.TimeFactor):
		return fmt.Errorf("workload: TimeFactor is %v; it must be more than 0", s.TimeFactor)
	case !isFactor(s.DurationFactor):
		return fmt.Errorf("workload: DurationFactor is %v; it must be more than 0", s.DurationFactor)
	case s.MaxDuration < 0:
		return fmt.Errorf("workload: MaxDuration is %v; it must be at least 0", s.MaxDuration)
	}
	return nil
}

func isFactor(f float64) bool { return f >= 0 && !math.IsInf(f, 1) }

// Apply returns the shaped trace, with a note for each step that was asked
// for. The trace that it is given stays as it is. It fails if the shape is not
// valid or its window begins after the end of the trace.
func (s Shape) Apply(t Trace) (Trace, error) {
	if err := s.Validate(); err != nil {
		return Trace{}, err
	}
	if s.Start > 0 && s.Start >= t.Length {
		return Trace{}, fmt.Errorf("workload: Start is %v, but trace %q is only %v long; begin earlier", s.Start, t.Name, t.Length)
	}
	out := Trace{Name: t.Name, Length: t.Length, Arrivals: slices.Clone(t.Arrivals), Memory: t.Memory, Notes: slices.Clone(t.Notes)}
	out.window(s.Start, s.Length)
	if s.KeepOneIn > 1 {
		out.thin(s.KeepOneIn)
	}
	if s.TimeFactor != 0 && s.TimeFactor != 1 {
		out.compressTime(s.TimeFactor)
	}
	if s.DurationFactor != 0 && s.DurationFactor != 1 {
		out.divideDurations(s.DurationFactor)
	}
	if s.MaxDuration > 0 {
		out.capDurations(s.MaxDuration)
	}
	return out, nil
}

func (t *Trace) addNote(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Trace) window(start, length time.Duration) {
	end := t.Length
	if length > 0 {
		end = min(end, start+length)
	}
	if start == 0 && end == t.Length {
		return
	}
	kept := t.Arrivals[:0]
	for _, a := range t.Arrivals {
		if a.At >= start && a.At < end {
			a.At -= start
			kept = append(kept, a)
		}
	}
	t.addNote("window from %v to %v: %d of %d calls", start, end, len(kept), len(t.Arrivals))
	t.Arrivals, t.Length = kept, end-start
}

func (t *Trace) thin(oneIn int) {
	seen := make(map[string]int)
	kept := t.Arrivals[:0]
	for _, a := range t.Arrivals {
		if seen[a.Function]%oneIn == 0 {
			kept = append(kept, a)
		}
		seen[a.Function]++
	}
	t.addNote("kept the first call of each function and then one in %d: %d of %d calls", oneIn, len(kept), len(t.Arrivals))
	t.Arrivals = kept
}

func (t *Trace) compressTime(factor float64) {
	was := t.Length
	for i := range t.Arrivals {
		t.Arrivals[i].At = divided(t.Arrivals[i].At, factor)
	}
	t.Length = divided(t.Length, factor)
	// Calls that are now due together need the order of ties.
	sortArrivals(t.Arrivals)
	t.addNote("time compressed by %g: %v became %v", factor, was, t.Length)
}

func (t *Trace) divideDurations(factor float64) {
	for i := range t.Arrivals {
		t.Arrivals[i].Duration = divided(t.Arrivals[i].Duration, factor)
	}
	t.addNote("durations divided by %g: all %d", factor, len(t.Arrivals))
}

func (t *Trace) capDurations(limit time.Duration) {
	capped := 0
	for i := range t.Arrivals {
		if t.Arrivals[i].Duration > limit {
			t.Arrivals[i].Duration = limit
			capped++
		}
	}
	t.addNote("durations capped at %v: %d of %d", limit, capped, len(t.Arrivals))
}

func divided(d time.Duration, factor float64) time.Duration {
	return time.Duration(math.Round(float64(d) / factor))
}
