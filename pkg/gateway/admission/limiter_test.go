package admission

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.Unix(1_700_000_000, 0)

func enter(t *testing.T, b *Limiter, namespace string, l Limits, bytes int64, want Reason) {
	t.Helper()
	if got := b.Admit(start, namespace, l, bytes); got.Reason != want {
		t.Fatalf("a call of %s with %d bytes: %v, want reason %d", namespace, bytes, got, want)
	}
}

// fill enters calls until one is refused and returns how many were taken.
func fill(b *Limiter, namespace string, bytes int64) (taken int, last Decision) {
	for {
		if last = b.Admit(start, namespace, Limits{}, bytes); last.Reason != Admitted {
			return taken, last
		}
		taken++
	}
}

func TestOneNamespaceLeavesRoomForOthers(t *testing.T) {
	b := New(Capacity{Calls: 800, Bytes: 1 << 30})
	taken, last := fill(b, "hog", 0)
	if taken != 700 || last.Reason != OverShare || last.RetryAfter <= 0 {
		t.Fatalf("alone it got %d of 800, then %v", taken, last)
	}
	if taken, _ := fill(b, "victim", 0); taken < 80 {
		t.Errorf("the next one got %d", taken)
	}
	enter(t, b, "third", Limits{}, 0, Admitted)
}

func TestBytesAreSharedAsCallsAre(t *testing.T) {
	b := New(Capacity{Calls: 1 << 20, Bytes: 800 << 10})
	if taken, last := fill(b, "hog", 1<<10); taken != 700 || last.Reason != OverShare {
		t.Fatalf("alone it got %d KiB of 800, then %v", taken, last)
	}
	enter(t, b, "hog", Limits{}, 0, Admitted)
	enter(t, b, "victim", Limits{}, 64<<10, Admitted)
	enter(t, b, "third", Limits{}, 64<<10, Full)
}

// A namespace that held nearly all gives way to the other as its calls end.
func TestGreedyNamespacesEndUpWithEqualParts(t *testing.T) {
	b := New(Capacity{Calls: 1000, Bytes: 1})
	held := map[string]int{}
	held["first"], _ = fill(b, "first", 0)
	names := []string{"first", "second", "third"}
	rng := uint32(7)
	for range 20_000 {
		// A random call ends, and then everybody tries to take its place.
		rng = rng*1664525 + 1013904223
		n := int(rng>>8) % (held["first"] + held["second"] + held["third"])
		for _, name := range names {
			if n < held[name] {
				b.Release(start, name, 0)
				held[name]--
				break
			}
			n -= held[name]
		}
		for _, name := range names {
			if b.Admit(start, name, Limits{}, 0).Reason == Admitted {
				held[name]++
			}
		}
	}
	for _, name := range names {
		if held[name] < 300 || held[name] > 340 {
			t.Errorf("%s holds %d; all: %v", name, held[name], held)
		}
	}
}

func TestSmallCapacitiesCanBeUsedWhole(t *testing.T) {
	for calls := 1; calls < 8; calls++ {
		b := New(Capacity{Calls: calls, Bytes: 1})
		if taken, last := fill(b, "only", 0); taken != calls || last.Reason != Full {
			t.Errorf("of %d calls %d are taken, then %v", calls, taken, last)
		}
	}
}

func TestOwnLimits(t *testing.T) {
	b := New(Capacity{Calls: 100, Bytes: 100})
	l := Limits{InFlight: 2, Bytes: 10}
	enter(t, b, "a", l, 8, Admitted)
	enter(t, b, "a", l, 3, BytesReached)
	enter(t, b, "a", l, 2, Admitted)
	enter(t, b, "a", l, 0, InFlightReached)
	enter(t, b, "b", l, 8, Admitted)
	b.Release(start, "a", 8)
	enter(t, b, "a", l, 8, Admitted)
}

func TestTheRateIsABucket(t *testing.T) {
	b := New(Capacity{Calls: 1000, Bytes: 1})
	l := Limits{Rate: 10, Burst: 3}
	now, taken := start, 0
	call := func() Decision {
		v := b.Admit(now, "a", l, 0)
		if v.Reason == Admitted {
			taken++
			b.Release(now, "a", 0)
		}
		return v
	}
	for range 10 {
		call()
	}
	if v := call(); taken != 3 || v.Reason != RateReached || v.RetryAfter != 100*time.Millisecond {
		t.Fatalf("%d of a burst of 3 were taken, then %v", taken, v)
	}
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		call()
	}
	if taken < 102 || taken > 103 {
		t.Errorf("%d calls in ten seconds at 10/s", taken-3)
	}
	// A change takes effect at once and gives nothing away.
	l = Limits{Rate: 1, Burst: 1}
	if v := call(); v.Reason != RateReached || v.RetryAfter < 500*time.Millisecond {
		t.Errorf("after the rate fell: %v", v)
	}
	l = Limits{}
	if v := call(); v.Reason != Admitted {
		t.Errorf("without a rate: %v", v)
	}
}

// Calls that are refused for want of room leave the rate alone.
func TestARefusedCallCostsNoToken(t *testing.T) {
	b := New(Capacity{Calls: 1, Bytes: 1})
	l := Limits{Rate: 1, Burst: 2}
	enter(t, b, "a", l, 0, Admitted)
	for range 5 {
		enter(t, b, "a", l, 0, Full)
	}
	b.Release(start, "a", 0)
	enter(t, b, "a", l, 0, Admitted)
	b.Release(start, "a", 0)
	enter(t, b, "a", l, 0, RateReached)
}

func TestWhatIsNotNeededIsForgotten(t *testing.T) {
	b := New(Capacity{Calls: 1000, Bytes: 1})
	for i := range 500 {
		namespace := fmt.Sprint(i)
		enter(t, b, namespace, Limits{}, 0, Admitted)
		b.Release(start, namespace, 0)
	}
	if len(b.namespaces) != 0 {
		t.Errorf("%d namespaces without calls are remembered", len(b.namespaces))
	}
	enter(t, b, "rated", Limits{Rate: 1}, 0, Admitted)
	b.DropNamespace("rated")
	b.Release(start, "rated", 0)
	enter(t, b, "rated", Limits{Rate: 1}, 0, Admitted)
	b.Release(start, "rated", 0)
	if len(b.namespaces) != 1 {
		t.Error("a bucket that is not full was forgotten")
	}
	b.DropNamespace("rated")
	b.DropNamespace("nobody")
	if len(b.namespaces) != 0 {
		t.Error("a namespace that is gone is remembered")
	}
}

func TestShare(t *testing.T) {
	got := Limits{Rate: 9, Burst: 10, InFlight: 100, Bytes: 7}.Share(3)
	if want := (Limits{Rate: 3, Burst: 4, InFlight: 34, Bytes: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (Limits{}).Share(4); got != (Limits{}) {
		t.Errorf("no limits become %+v", got)
	}
	if got := (Limits{Rate: 0.5}).Share(2); got != (Limits{Rate: 0.25, Burst: 1}) {
		t.Errorf("a low rate becomes %+v", got)
	}
}

func TestLimitsSayWhatIsWrong(t *testing.T) {
	for _, l := range []Limits{{Rate: -1}, {Burst: 1}, {Burst: -1, Rate: 1}, {InFlight: -1}, {Bytes: -1}} {
		if l.Validate() == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
	if err := (Limits{Rate: 1, Burst: 2, InFlight: 3, Bytes: 4}).Validate(); err != nil {
		t.Error(err)
	}
}

// entry is a call that the twin knows to be there.
type entry struct {
	namespace string
	bytes     int64
}

// The Book agrees with a twin that counts again what is there each time.
func TestTheBookAgreesWithASlowTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := Capacity{Calls: rapid.IntRange(1, 40).Draw(t, "calls"), Bytes: rapid.Int64Range(0, 400).Draw(t, "bytes")}
		limits := Limits{InFlight: rapid.IntRange(0, 20).Draw(t, "inFlight"), Bytes: rapid.Int64Range(0, 200).Draw(t, "perNamespace")}
		b := New(capacity)
		var here []entry
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				e := entry{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "namespace"), rapid.Int64Range(0, 30).Draw(t, "bytes")}
				got := b.Admit(start, e.namespace, limits, e.bytes)
				if want := twin(here, capacity, limits, e); got.Reason != want {
					t.Fatalf("%+v beside %+v: reason %d, want %d", e, here, got.Reason, want)
				}
				if (got.Reason == Admitted) != (got.RetryAfter == 0) {
					t.Fatalf("%+v", got)
				}
				if got.Reason == Admitted {
					here = append(here, e)
				}
			},
			"leave": func(t *rapid.T) {
				if len(here) == 0 {
					t.Skip("nobody is here")
				}
				i := rapid.IntRange(0, len(here)-1).Draw(t, "who")
				b.Release(start, here[i].namespace, here[i].bytes)
				here = append(here[:i], here[i+1:]...)
			},
		})
	})
}

func twin(here []entry, capacity Capacity, limits Limits, e entry) Reason {
	var calls, ownCalls int
	var bytes, ownBytes int64
	for _, other := range here {
		calls++
		bytes += other.bytes
		if other.namespace == e.namespace {
			ownCalls++
			ownBytes += other.bytes
		}
	}
	wanted, wantedBytes := ownCalls+1, ownBytes+e.bytes
	switch {
	case calls+1 > capacity.Calls || bytes+e.bytes > capacity.Bytes:
		return Full
	case limits.InFlight != 0 && wanted > limits.InFlight:
		return InFlightReached
	case limits.Bytes != 0 && wantedBytes > limits.Bytes:
		return BytesReached
	case wanted > 7*(capacity.Calls-calls) || (e.bytes > 0 && wantedBytes > 7*(capacity.Bytes-bytes)):
		return OverShare
	}
	return Admitted
}

func BenchmarkEnterAndLeave(b *testing.B) {
	book := New(Capacity{Calls: 20_000, Bytes: 512 << 20})
	for name, limits := range map[string]Limits{"no limits": {}, "all limits": {Rate: 1e9, Burst: 1e6, InFlight: 100, Bytes: 1 << 20}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				book.Admit(start, "a", limits, 100)
				book.Release(start, "a", 100)
			}
		})
	}
}
