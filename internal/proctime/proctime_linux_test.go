package proctime

import (
	"os"
	"syscall"
	"testing"
	"time"
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

func TestNothingIsKnownOfAProcessThatIsNotThere(t *testing.T) {
	const none = 1 << 22 // the kernel's largest, and one more
	if cpu, err := CPU(none + 1); err == nil {
		t.Errorf("it has used %v", cpu)
	}
	if n, err := Switches(none + 1); err == nil {
		t.Errorf("it has switched %d times", n)
	}
}
