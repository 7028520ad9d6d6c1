package main

import (
	"strings"
	"testing"
)

func TestWhatIsALeak(t *testing.T) {
	usual := []holding{
		{name: "gateway-1", role: "gateway", goroutines: 100, fds: 20},
		{name: "scheduler-1", role: "scheduler", goroutines: 100, fds: 20},
		{name: "scheduler-2", role: "scheduler", goroutines: 300, fds: 50},
	}
	for name, c := range map[string]struct {
		now  holding
		want string
	}{
		"as much as usual":                     {holding{role: "scheduler", goroutines: 300, fds: 50}, ""},
		"functions of another, and some more":  {holding{role: "scheduler", goroutines: 300 + spareGoroutines, fds: 50 + spareFDs}, ""},
		"goroutines":                           {holding{role: "scheduler", goroutines: 301 + spareGoroutines}, "scheduler had more"},
		"files":                                {holding{role: "scheduler", fds: 51 + spareFDs}, "scheduler had more"},
		"what only the other role may hold":    {holding{role: "gateway", goroutines: 300}, "gateway had more"},
		"calls that wait, though nobody calls": {holding{role: "gateway", waiting: 2}, "2 calls wait"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(leaksOf(usual, []holding{c.now}), "\n")
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
