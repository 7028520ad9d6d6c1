package nodeagent

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/pkg/nodeagent/callorder"
)

// notedTimer is one of Go's that notes how often it is due.
type notedTimer struct {
	kerneltimer.Waker
	due atomic.Int64
}

// use lets a node agent have it.
func (n *notedTimer) use(_ *Config, d *Deps) {
	d.NewTimer = func(due func()) kerneltimer.Waker {
		n.Waker = kerneltimer.Go(func() {
			n.due.Add(1)
			due()
		})
		return n
	}
}

// wakesIn is how often the timer is due while time passes.
func (m *machine) wakesIn(timer *notedTimer, d time.Duration) int64 {
	before := timer.due.Load()
	m.pass(d)
	return timer.due.Load() - before
}

func TestANodeAgentRestsOnceNobodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := &notedTimer{}
		m := newMachine(t, timer.use)
		defer m.run()()
		p := m.connect("a", "f")
		m.want(9)
		if n := m.wakesIn(timer, time.Second); n < 80 {
			t.Errorf("it looks %d times a second on a busy node", n)
		}
		p.hangUp()
		m.pass(time.Second)
		if n := m.wakesIn(timer, time.Hour); n > 0 {
			t.Errorf("it looks %d times in an hour although nobody is there", n)
		}
		m.connect("b", "f")
		if n := m.wakesIn(timer, time.Second); n < 6 {
			t.Errorf("it looks %d times a second once somebody is there", n)
		}
	})
}

func TestMessagesSaveWakeUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := &notedTimer{}
		m := newMachine(t, timer.use)
		defer m.run()()
		p := m.connect("a", "f")
		m.want(9)
		before := timer.due.Load()
		for n := range uint64(300) {
			p.ask(n)
			m.pass(2 * time.Millisecond)
		}
		if n := timer.due.Load() - before; n > 10 {
			t.Errorf("it woke up %d times between 300 messages", n)
		}
		if last := m.state.looks.lookedAt; m.now()-last > 6*time.Millisecond {
			t.Errorf("it looked last %v ago", m.now()-last)
		}
	})
}

func TestABusyMachineWhereNobodyWaitsIsSampledHalfAsOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timer := &notedTimer{}
		m := newMachine(t, func(c *Config, d *Deps) {
			c.Calls.Cores, c.Calls.Slice = 1, callorder.Slice{Rule: callorder.SliceFixed, Length: 50 * time.Millisecond}
			timer.use(c, d)
		})
		defer m.run()()
		has, waits := m.connect("a", "f"), m.connect("b", "g")
		m.want(9) // by other programs
		if n := m.wakesIn(timer, time.Second); n > 100 {
			t.Errorf("with nobody who wants a core it looks %d times a second", n)
		}
		has.ask(1)
		m.group("a").compute(true)
		if n := m.wakesIn(timer, 45*time.Millisecond); n > 5 {
			t.Errorf("beside one call with a core it looks %d times in 45 ms", n)
		}
		m.pass(4 * time.Millisecond)
		waits.heard()
		waits.ask(1)
		m.pass(6 * time.Millisecond)
		expect(t, "once the other's slice is over", waits, "grant 1")
		m.group("b").compute(true)
		if n := m.wakesIn(timer, 40*time.Millisecond); n < 6 {
			t.Errorf("while a call is beyond its slice it looks %d times in 40 ms", n)
		}
	})
}
