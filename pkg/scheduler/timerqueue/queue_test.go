package timerqueue

import (
	"cmp"
	"slices"
	"testing"
	"time"
	"unsafe"

	"pgregory.net/rapid"
)

// Alarms wake whom a map of times would, and in the order of their times.
func TestQueueAgreesWithAMapOfTimes(t *testing.T) {
	start := time.Unix(1000, 0)
	rapid.Check(t, func(t *rapid.T) {
		var timers Queue[int]
		owners := make([]Timer[int], 8)
		for i := range owners {
			owners[i].Owner = i
		}
		model := make(map[int]time.Time)
		now := start
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i := rapid.IntRange(0, len(owners)-1).Draw(t, "sleeper")
				model[i] = now.Add(time.Duration(rapid.IntRange(-3, 20).Draw(t, "seconds")) * time.Second)
				timers.Set(&owners[i], model[i])
			},
			"unset": func(t *rapid.T) {
				i := rapid.IntRange(0, len(owners)-1).Draw(t, "sleeper")
				delete(model, i)
				timers.Set(&owners[i], time.Time{})
			},
			"due": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second)
				var want []int
				for i, at := range model {
					if !at.After(now) {
						want = append(want, i)
					}
				}
				slices.SortFunc(want, func(a, b int) int { return cmp.Or(model[a].Compare(model[b]), cmp.Compare(a, b)) })
				got := timers.Due(now)
				if !slices.IsSortedFunc(got, func(a, b int) int { return model[a].Compare(model[b]) }) {
					t.Fatalf("woke %v, whose times are %v", got, model)
				}
				slices.SortFunc(got, func(a, b int) int { return cmp.Or(model[a].Compare(model[b]), cmp.Compare(a, b)) })
				if !slices.Equal(got, want) {
					t.Fatalf("woke %v, want %v", got, want)
				}
				for _, i := range want {
					delete(model, i)
				}
			},
			"": func(t *rapid.T) {
				if timers.Len() != len(model) {
					t.Fatalf("%d are set, want %d", timers.Len(), len(model))
				}
			},
		})
	})
}

// setBack is a time whose clock, but not its monotonic reading, was set back by some seconds.
func setBack(t time.Time, seconds int) time.Time {
	wall := (*uint64)(unsafe.Pointer(&t)) // a bit, 33 bits of seconds, and 30 bits of nanoseconds
	*wall -= uint64(seconds) << 30
	return t
}

func TestAClockThatIsSetBackDelaysNoTimer(t *testing.T) {
	now := time.Now()
	if back := setBack(now, 3600); !back.Equal(now) || !back.Round(0).Equal(now.Round(0).Add(-time.Hour)) {
		t.Fatalf("%v was set back to %v", now, back)
	}
	var timers Queue[string]
	timers.Set(&Timer[string]{Owner: "f"}, now.Add(time.Minute))
	if due := timers.Due(setBack(now.Add(time.Minute), 3600)); len(due) != 1 {
		t.Errorf("due are %v", due)
	}
}

// A time of a calendar, such as the start of a window, was computed by the clock as it was, and lies
// before timers that will expire sooner.
func TestAClockThatIsSetBackReordersTimers(t *testing.T) {
	now := time.Now()
	back := setBack(now, 3600)
	var timers Queue[string]
	timers.Set(&Timer[string]{Owner: "soon"}, now.Add(time.Minute))
	timers.Set(&Timer[string]{Owner: "window"}, now.Add(10*time.Minute).Round(0))
	if due := timers.Due(now); len(due) > 0 {
		t.Fatalf("due are %v", due)
	}
	if due := timers.Due(back); !slices.Equal(due, []string{"window"}) {
		t.Errorf("due are %v, want what goes by the calendar", due)
	}
	timers.Set(&Timer[string]{Owner: "window"}, back.Add(30*time.Minute).Round(0))
	if due := timers.Due(back.Add(time.Minute)); !slices.Equal(due, []string{"soon"}) {
		t.Errorf("due are %v, want the one whose minute is over", due)
	}
}
