package nodeagent

import (
	"testing"
	"testing/synctest"
	"time"
)

// notedTicker notes its last period.
type notedTicker struct {
	Ticker
	every time.Duration
}

func (n *notedTicker) Reset(every time.Duration) {
	n.every = every
	n.Ticker.Reset(every)
}

func TestANodeAgentRestsOnceNobodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker := &notedTicker{Ticker: newGoTicker()}
		m := newMachine(t, func(_ *Config, d *Deps) { d.NewTicker = func() Ticker { return ticker } })
		defer m.run()()
		p := m.connect("a", "f")
		m.want(9)
		if ticker.every > m.config.SampleEvery {
			t.Errorf("it looks each %s on a busy node", ticker.every)
		}
		p.hangUp()
		m.pass(time.Second)
		if ticker.every < time.Minute {
			t.Errorf("it looks each %s although nobody is there", ticker.every)
		}
	})
}

func TestATickerTicksUntilItStops(t *testing.T) {
	for name, ticker := range map[string]Ticker{"of the kernel": NewKernelTicker(), "of Go": newGoTicker()} {
		t.Run(name, func(t *testing.T) {
			defer ticker.Stop()
			began := time.Now()
			ticker.Reset(2 * time.Millisecond)
			for range 5 {
				<-ticker.Ticks()
			}
			if took := time.Since(began); took < 9*time.Millisecond {
				t.Errorf("five ticks took %v", took)
			}
			ticker.Reset(time.Hour)
			select {
			case <-ticker.Ticks(): // was on its way
			default:
			}
			select {
			case <-ticker.Ticks():
				t.Error("it ticks before it is due")
			case <-time.After(20 * time.Millisecond):
			}
			ticker.Reset(time.Millisecond)
			<-ticker.Ticks()
		})
	}
}
