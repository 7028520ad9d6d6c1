package kerneltimer

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// started returns a timer and what gets its calls.
func started(t *testing.T) (*Timer, <-chan time.Time) {
	t.Helper()
	due := make(chan time.Time, 100)
	timer, err := New(func() { due <- time.Now() })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(timer.Stop)
	return timer, due
}

func TestOnlyTheLastResetCounts(t *testing.T) {
	timer, due := started(t)
	timer.Reset(time.Millisecond * 20)
	timer.Reset(time.Hour)
	nothing(t, due)
	timer.Reset(time.Millisecond)
	<-due
	timer.Reset(time.Hour)
}

func TestATimerIsReadOnceForEachTime(t *testing.T) {
	reads := func() (n int) {
		text, err := os.ReadFile("/proc/self/io")
		if err != nil {
			t.Skip(err)
		}
		for line := range strings.Lines(string(text)) {
			_, _ = fmt.Sscanf(line, "syscr: %d", &n)
		}
		return n
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // Go's scheduler reads too, to wake others
	timer, due := started(t)
	before := reads()
	const times = 100
	for range times {
		timer.Reset(time.Millisecond)
		<-due
	}
	if n := reads() - before; n > times+times/2 {
		t.Errorf("%d reads for %d times", n, times)
	}
}

func TestAStoppedTimerCallsNothing(t *testing.T) {
	timer, due := started(t)
	timer.Reset(time.Millisecond)
	<-due
	timer.Stop()
	for len(due) > 0 {
		<-due
	}
	timer.Reset(time.Millisecond)
	nothing(t, due)
}
