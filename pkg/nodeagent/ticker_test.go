package nodeagent

import (
	"testing"
	"time"
)

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
