// Command wait lets a call of an agent's core wait for a second of virtual time on a busy node, and prints how often the agent
// said so to its scheduler, and how often it wanted to be woken at a time that had come.
package main

import (
	"fmt"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// spins is how often the agent may want that before nobody counts on.
const spins = 1000

func main() {
	a := agent{
		core: core.New(core.Params{Concurrency: 1, BackoffAfter: 10 * time.Second, IdleTimeout: time.Minute, Jitter: 1}),
		now:  time.Unix(1_000_000, 0),
	}
	for _, e := range []core.Event{
		core.Begin{}, core.Opened{Session: 1}, core.Received{Session: 1, Reply: core.Welcome{Epoch: 1}}, core.FunctionReady{},
		core.NodeMode{Busy: true, Ask: true},
		core.Received{Session: 1, Reply: core.Ticket{Ticket: invocation.Ticket{ID: invocation.ID{1}, Gateway: "g:1", Deadline: a.now.Add(time.Minute)}}},
	} {
		a.on(e)
	}
	for range 10 {
		a.pass(100 * time.Millisecond)
		a.on(core.NodeStill{})
	}
	fmt.Printf("said=%d spun=%d\n", a.said, a.spun)
}

type agent struct {
	core       *core.Core
	now, wake  time.Time
	said, spun int
}

func (a *agent) on(e core.Event) {
	for _, effect := range a.core.Step(a.now, e) {
		switch e := effect.(type) {
		case core.WakeAt:
			a.wake = e.Time
			if !e.Time.After(a.now) {
				a.spun++
			}
		case core.Send:
			if p, is := e.Message.(core.Pull); is && p.LongWait != (core.LongWait{}) {
				a.said++
			}
		}
	}
}

func (a *agent) pass(d time.Duration) {
	until := a.now.Add(d)
	for a.spun < spins && !a.wake.IsZero() && !a.wake.After(until) {
		if a.wake.After(a.now) {
			a.now = a.wake
		}
		a.wake = time.Time{}
		a.on(core.Wake{})
	}
	a.now = until
}
