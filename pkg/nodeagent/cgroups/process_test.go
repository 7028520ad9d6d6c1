package cgroups

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"
)

func TestAProcessIsMeasured(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has clocks of other processes")
	}
	p := ForProcess(os.Getpid())
	before, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		after, err := p.Usage()
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("from %v to %v, %v", before, after, err)
		}
		if after > before+10*time.Millisecond {
			break
		}
	}
	if err := p.SetLow(true); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
	if _, err := ForProcess(1 << 27).Usage(); err == nil {
		t.Error("a process that does not exist has used something")
	}
}

func TestAProcessKnowsItsCores(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has cpusets")
	}
	if cores := OwnCores(); len(cores) != runtime.NumCPU() || !slices.IsSorted(cores) {
		t.Errorf("it may run on %v, which are %d", cores, runtime.NumCPU())
	}
}
