package proctime

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The clock of a process counts what the process itself hears that it has used.
func TestCPUIsThatOfTheProcess(t *testing.T) {
	used := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before := used()
	clock, err := CPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	// The kernel may lag by a tick in what it tells of user and system time.
	if after := used(); clock < before-20*time.Millisecond || clock > after+20*time.Millisecond {
		t.Errorf("the clock says %v, the process between %v and %v", clock, before, after)
	}
}

// Two threads that want the same core wait for each other.
func TestDelayGrowsWhileThreadsWantTheSameCore(t *testing.T) {
	before, err := Delay(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var threads sync.WaitGroup
	for range 2 {
		threads.Go(func() {
			runtime.LockOSThread() // and never unlocked, so the thread ends with its affinity
			var mine, one unix.CPUSet
			if err := unix.SchedGetaffinity(0, &mine); err != nil {
				t.Error(err)
				return
			}
			for cpu := 0; one.Count() == 0; cpu++ {
				if mine.IsSet(cpu) {
					one.Set(cpu)
				}
			}
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
				return
			}
			for !stop.Load() {
			}
		})
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		now, err := Delay(os.Getpid())
		if err != nil {
			t.Error(err)
			break
		}
		if now-before >= 10*time.Millisecond {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("they waited %v", now-before)
			break
		}
	}
	stop.Store(true)
	threads.Wait()
}

func TestNothingIsKnownOfAProcessThatIsNotThere(t *testing.T) {
	const none = 1 << 22 // the kernel's largest, and one more
	if cpu, err := CPU(none + 1); err == nil {
		t.Errorf("it has used %v", cpu)
	}
	if waited, err := Delay(none + 1); err == nil {
		t.Errorf("it has waited %v", waited)
	}
	if n, err := Switches(none + 1); err == nil {
		t.Errorf("it has switched %d times", n)
	}
}

// A server looks ten times a second.
func BenchmarkDelay(b *testing.B) {
	for b.Loop() {
		if _, err := Delay(os.Getpid()); err != nil {
			b.Fatal(err)
		}
	}
}
