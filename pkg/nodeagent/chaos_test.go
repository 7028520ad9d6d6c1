package nodeagent

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// chaosAgent is an instance that does what agents do, at random.
type chaosAgent struct {
	*fakeAgent
	name string
	asks uint64
	// waits says that it has an ask without a grant, and since when it has heard nothing.
	waits bool
	heard time.Time
	runs  bool
}

// hear takes in what has come, and returns what must not be.
func (a *chaosAgent) hear(now time.Time) error {
	for _, word := range a.fakeAgent.heard() {
		switch {
		case strings.HasPrefix(word, "grant"):
			if !a.waits {
				return fmt.Errorf("%s got a ticket that it has not asked for", a.name)
			}
			a.waits, a.runs = false, true
		case word == "still":
			a.heard = now
		}
	}
	if a.waits && now.Sub(a.heard) > 220*time.Millisecond {
		return fmt.Errorf("%s waits and has heard nothing for %v", a.name, now.Sub(a.heard))
	}
	return nil
}

// act does one thing.
func (a *chaosAgent) act(m *machine, rng *rand.Rand) {
	group := m.group(a.name)
	switch n := rng.IntN(10); {
	case a.waits && n < 1:
		a.giveUp(a.asks)
		if err := a.hear(time.Now()); err == nil && !a.runs {
			a.waits = false
		}
	case a.waits:
	case n < 4:
		a.asks++
		a.waits, a.runs, a.heard = true, false, time.Now()
		a.ask(a.asks)
	case n < 6 && a.runs:
		a.runs = false
		a.endCall()
	case n < 7 && !a.runs:
		a.runs = true
		a.say(&nodewire.ComputeRequest{Kind: &nodewire.ComputeRequest_Running{Running: &nodewire.Running{ForNs: rng.Int64N(1e9) - 1e6}}})
	case n < 8:
		group.failWith([]error{nil, nil, errors.New("the kernel says no")}[rng.IntN(3)])
	}
	group.compute(a.runs && rng.IntN(4) > 0)
}

func TestChaos(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runChaos(t, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func runChaos(t *testing.T, rng *rand.Rand) {
	orders := callorder.Orders()
	m := newMachine(t, func(c *Config, _ *Deps) {
		c.Calls.Order = orders[rng.IntN(len(orders))]
		c.Calls.Preempt = c.Calls.Order == callorder.SERPT
	})
	stop := m.run()
	var agents []*chaosAgent
	var all []*fakeGroup
	for range 1500 {
		switch n := rng.IntN(60); {
		case n == 0 || len(agents) == 0:
			name := fmt.Sprint("i", rng.IntN(12)) // it may have a stream already
			agents = slices.DeleteFunc(agents, func(a *chaosAgent) bool { return a.name == name })
			agents = append(agents, &chaosAgent{fakeAgent: m.connect(name, fmt.Sprint("f", rng.IntN(3))), name: name})
			all = append(all, m.group(name))
		case n == 1:
			i := rng.IntN(len(agents))
			agents[i].hangUp()
			agents = slices.Delete(agents, i, i+1)
		case n < 5:
			m.mu.Lock()
			m.runnable = rng.IntN(6)
			m.mu.Unlock()
		default:
			agents[rng.IntN(len(agents))].act(m, rng)
		}
		m.pass(time.Duration(rng.IntN(20)) * time.Millisecond)
		for _, a := range agents {
			if err := a.hear(time.Now()); err != nil {
				t.Fatalf("with the order %s: %v", m.config.Calls.Order, err)
			}
		}
		checkBands(t, m)
	}
	for _, g := range all {
		g.failWith(nil)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	for i, g := range all {
		if low, closed, _ := g.state(); low || !closed {
			t.Errorf("group %d of %d is low: %v, closed: %v", i, len(all), low, closed)
		}
	}
}

// checkBands compares the bands that groups have with those that the core wants.
func checkBands(t *testing.T, m *machine) {
	t.Helper()
	m.Agent.mu.Lock()
	defer m.Agent.mu.Unlock()
	low := m.state.core.AppendLow(nil)
	if len(low) != len(m.state.breaths.low) {
		t.Fatalf("%d instances are low, and %d may breathe", len(low), len(m.state.breaths.low))
	}
	for id, s := range m.state.sessions {
		if s.low != slices.Contains(low, id) {
			t.Fatalf("%s is low: %v; the core wants the contrary", s.name, s.low)
		}
		if is, _, _ := s.group.(*fakeGroup).state(); is != s.inLow || !s.failing && is != (s.low && !m.state.breaths.breathing(id)) {
			t.Fatalf("the group of %s is low: %v, believed %v, wanted %v", s.name, is, s.inLow, s.low)
		}
	}
	if n := m.state.core.Counts(); m.state.mode.busy && n.Waiting > 0 && n.Holding < m.config.Calls.Cores {
		t.Fatalf("calls wait while cores are free: %+v", n)
	}
}
