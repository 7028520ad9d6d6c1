package timerqueue

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Alarms wake whom a map of times would, and in the order of their times.
func TestAlarmsAreAsAMapOfTimes(t *testing.T) {
	start := time.Unix(1000, 0)
	rapid.Check(t, func(t *rapid.T) {
		var alarms Alarms[int]
		sleepers := make([]Alarm[int], 8)
		for i := range sleepers {
			sleepers[i].Of = i
		}
		twin := make(map[int]time.Time)
		now := start
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i := rapid.IntRange(0, len(sleepers)-1).Draw(t, "sleeper")
				twin[i] = now.Add(time.Duration(rapid.IntRange(-3, 20).Draw(t, "seconds")) * time.Second)
				alarms.Set(&sleepers[i], twin[i])
			},
			"unset": func(t *rapid.T) {
				i := rapid.IntRange(0, len(sleepers)-1).Draw(t, "sleeper")
				delete(twin, i)
				alarms.Set(&sleepers[i], time.Time{})
			},
			"due": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "seconds")) * time.Second)
				var want []int
				for i, at := range twin {
					if !at.After(now) {
						want = append(want, i)
					}
				}
				slices.SortFunc(want, func(a, b int) int { return cmp.Or(twin[a].Compare(twin[b]), cmp.Compare(a, b)) })
				got := alarms.Due(now)
				if !slices.IsSortedFunc(got, func(a, b int) int { return twin[a].Compare(twin[b]) }) {
					t.Fatalf("woke %v, whose times are %v", got, twin)
				}
				slices.SortFunc(got, func(a, b int) int { return cmp.Or(twin[a].Compare(twin[b]), cmp.Compare(a, b)) })
				if !slices.Equal(got, want) {
					t.Fatalf("woke %v, want %v", got, want)
				}
				for _, i := range want {
					delete(twin, i)
				}
			},
			"": func(t *rapid.T) {
				if alarms.Len() != len(twin) {
					t.Fatalf("%d are set, want %d", alarms.Len(), len(twin))
				}
			},
		})
	})
}
