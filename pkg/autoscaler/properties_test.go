package autoscaler

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func named(t testing.TB, name string) Decider {
	t.Helper()
	d, known := ByName(name)
	if !known {
		t.Fatalf("no decider %q", name)
	}
	return d
}

func TestByName(t *testing.T) {
	for _, name := range Names() {
		named(t, name)
	}
	if _, known := ByName("horizon"); known {
		t.Error("a name that is not one was known")
	}
}

// history is a function over some ticks: what happens to it is drawn, and what is
// decided is done.
type history struct {
	s      Snapshot
	limits Limits
}

func drawHistory(t *rapid.T) *history {
	h := &history{s: Snapshot{
		Room:        rapid.SampledFrom([]int{-1, 0, 1, 7, 1000}).Draw(t, "room"),
		Concurrency: rapid.IntRange(0, 4).Draw(t, "concurrency"),
		MeanStart:   time.Duration(rapid.Int64Range(0, int64(5*time.Second)).Draw(t, "start")),
	}}
	h.limits.Max = rapid.IntRange(0, 60).Draw(t, "max")
	h.limits.Min = rapid.IntRange(0, 5).Draw(t, "min")
	if h.limits.Max > 0 {
		h.limits.Min = min(h.limits.Min, h.limits.Max)
	}
	return h
}

// tick draws what happens until the next one.
func (h *history) tick(t *rapid.T) {
	s := &h.s
	s.Elapsed = rapid.SampledFrom([]time.Duration{
		time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute,
	}).Draw(t, "elapsed")
	s.Arrived += uint64(rapid.SampledFrom([]int{0, 0, 1, 5, 300}).Draw(t, "arrived"))
	s.Departed += uint64(rapid.IntRange(0, s.Waiting()).Draw(t, "departed"))
	s.Departed -= min(s.Departed, rapid.SampledFrom([]uint64{0, 0, 0, 1, 3}).Draw(t, "came back"))
	there := rapid.IntRange(0, s.Creating).Draw(t, "started")
	s.Created, s.Creating = s.Created+there, s.Creating-there
	s.Lost = rapid.IntRange(0, min(3, s.Created)).Draw(t, "lost")
	s.Created -= s.Lost
	s.Busy = rapid.IntRange(0, s.Created).Draw(t, "busy")
	s.MeanExecution = rapid.SampledFrom([]time.Duration{0, 0, time.Microsecond, 5 * time.Millisecond, time.Second, time.Hour}).Draw(t, "execution")
	s.Failing = rapid.IntRange(0, 9).Draw(t, "failing") == 0
	s.Stale, s.OldestWait = 0, 0
	if s.Waiting() > 0 {
		s.Stale = rapid.IntRange(0, s.Waiting()).Draw(t, "stale")
		s.OldestWait = time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "oldest"))
	}
}

func (h *history) do(d Decision) {
	h.s.Creating += d.Create - d.Cancel
	h.s.State = d.State
}

func TestEveryDeciderKeepsWhatADecisionPromises(t *testing.T) {
	for _, name := range Names() {
		decide := named(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := drawHistory(t)
				for range rapid.IntRange(1, 30).Draw(t, "ticks") {
					arrived := h.s.Arrived
					h.tick(t)
					free := decide(h.s, stale)
					keepsPromises(t, h.s, free, arrived)
					d := Bound(free, h.s, h.limits)
					keepsLimits(t, h, d)
					h.do(d)
				}
			})
		})
	}
}

func keepsPromises(t *rapid.T, s Snapshot, d Decision, arrived uint64) {
	switch {
	case d.Create < 0 || d.Cancel < 0 || d.Cancel > s.Creating || d.Create > 0 && d.Cancel > 0:
		t.Fatalf("creates %d and cancels %d of %d", d.Create, d.Cancel, s.Creating)
	case d.Cancel > 0 && d.Cancel >= s.Created+s.Creating:
		t.Fatal("cancels the last")
	case s.Waiting() == 0 && s.Arrived == arrived && d.Create > 0:
		t.Fatalf("creates %d while nothing waits and nothing has come", d.Create)
	case d.Why == "":
		t.Fatal("does not say why")
	case math.IsNaN(d.Rate) || math.IsInf(d.Rate, 0) || d.Rate < 0 || d.Required < 0:
		t.Fatalf("rate %v, required %d", d.Rate, d.Required)
	}
	// What came back while nobody looked is not subtracted.
	if h, is := d.State.(horizonState); is && (h.Rates.Runs < 0 || h.Rates.Runs > float64(s.Arrived)+mostReturned) {
		t.Fatalf("counts %v departures of %d calls", h.Rates.Runs, s.Arrived)
	}
}

// mostReturned is more than the tickets that come back in a history.
const mostReturned = 100

func keepsLimits(t *rapid.T, h *history, d Decision) {
	before := h.s.Created + h.s.Creating
	after := before + d.Create - d.Cancel
	switch {
	case d.Create < 0 || d.Cancel < 0 || d.Create > 0 && d.Cancel > 0:
		t.Fatalf("creates %d and cancels %d", d.Create, d.Cancel)
	case h.limits.Max > 0 && after > max(h.limits.Max, before):
		t.Fatalf("%d instances of at most %d", after, h.limits.Max)
	case after < min(before, h.limits.Min) || d.Cancel == 0 && after < h.limits.Min:
		t.Fatalf("%d instances of at least %d", after, h.limits.Min)
	case (h.limits.Max == 0 || after < h.limits.Max) && h.s.Creating+d.Create-d.Cancel < h.s.Lost:
		t.Fatalf("%d lost, and %d on their way", h.s.Lost, h.s.Creating+d.Create-d.Cancel)
	}
}

func TestEveryDeciderDecidesTheSameOnACopy(t *testing.T) {
	for _, name := range Names() {
		decide := named(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := drawHistory(t)
				for range rapid.IntRange(1, 10).Draw(t, "ticks") {
					h.tick(t)
					d := decide(h.s, stale)
					if again := decide(copied(t, h.s), stale); again != d {
						t.Fatalf("decided %+v, and %+v on a copy", d, again)
					}
					h.do(d)
				}
			})
		})
	}
}

// A function with calls, without an instance and with room gets its first within the
// horizon, whatever happened to it before.
func TestEveryDeciderConservesWork(t *testing.T) {
	for _, name := range Names() {
		decide := named(t, name)
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := drawHistory(t)
				for range rapid.IntRange(0, 10).Draw(t, "ticks") {
					h.tick(t)
					h.do(decide(h.s, stale))
				}
				s := h.s
				s.Created, s.Creating, s.Busy, s.Lost, s.Room, s.Failing = 0, 0, 0, 0, -1, false
				s.Arrived += uint64(rapid.IntRange(1, 100).Draw(t, "calls"))
				for waited := time.Duration(0); waited <= max(stale.Tick, s.MeanStart, 2*stale.Tick); waited += stale.Tick {
					s.OldestWait, s.Stale, s.Elapsed = waited, 0, stale.Tick
					d := decide(s, stale)
					if d.Create > 0 {
						return
					}
					s.State = d.State
				}
				t.Fatalf("no instance for %d calls", s.Waiting())
			})
		})
	}
}

// copied is a snapshot that shares nothing with another one, which is a plain value.
func copied(t *rapid.T, s Snapshot) Snapshot {
	values := []any{&Snapshot{}}
	if s.State != nil {
		values = append(values, reflect.New(reflect.TypeOf(s.State)).Interface())
	}
	for i, of := range []any{s, s.State}[:len(values)] {
		text, err := json.Marshal(of)
		if err != nil || json.Unmarshal(text, values[i]) != nil {
			t.Fatal("a snapshot is not a plain value")
		}
	}
	c := *values[0].(*Snapshot)
	if c.State = nil; s.State != nil {
		c.State = reflect.ValueOf(values[1]).Elem().Interface()
	}
	return c
}

// A tick decides on every function with calls. What a decision leaves for the next one is all that it
// allocates.
func TestADecisionAllocatesNoMoreThanItsState(t *testing.T) {
	for _, name := range Names() {
		decide := named(t, name)
		s := Snapshot{
			Arrived: 1_000_000, Departed: 999_000, Stale: 500, OldestWait: time.Second, Created: 100, Busy: 100, Creating: 10, Room: -1,
			MeanExecution: 50 * time.Millisecond, MeanStart: 3 * time.Second, Elapsed: stale.Tick,
		}
		if n := testing.AllocsPerRun(100, func() { s.State = decide(s, stale).State }); n > 1 {
			t.Errorf("%s: a decision makes %v allocations, want at most 1", name, n)
		}
	}
}

func BenchmarkDecision(b *testing.B) {
	for _, name := range Names() {
		decide := named(b, name)
		b.Run(name, func(b *testing.B) {
			s := Snapshot{
				Arrived: 1_000_000, Departed: 999_000, Stale: 500, OldestWait: time.Second, Created: 100, Busy: 100, Creating: 10, Room: -1,
				MeanExecution: 50 * time.Millisecond, MeanStart: 3 * time.Second, Elapsed: stale.Tick,
			}
			b.ReportAllocs()
			for b.Loop() {
				s.Arrived, s.Departed = s.Arrived+200, s.Departed+200
				s.State = decide(s, stale).State
			}
		})
	}
}
