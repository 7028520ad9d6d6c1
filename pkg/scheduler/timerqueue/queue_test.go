package timerqueue

import (
	"cmp"
	"slices"
	"testing"
	"time"

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
