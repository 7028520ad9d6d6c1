package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// readMemory is the memory of this process after a collection. What has died since is left out.
func readMemory() (memory, error) {
	runtime.GC() // what pools hold survives one collection
	debug.FreeOSMemory()
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	m := memory{Go: int64(samples[0].Value.Uint64() + samples[1].Value.Uint64()), Goroutines: int64(runtime.NumGoroutine())}
	var err error
	m.Resident, err = resident()
	return m, err
}

// resident is the resident set of this process in bytes.
func resident() (int64, error) {
	const path = "/proc/self/status"
	status, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("only Linux says what is resident: %w", err)
	}
	for line := range bytes.Lines(status) {
		value, is := bytes.CutPrefix(line, []byte("VmRSS:"))
		if !is {
			continue
		}
		kilobytes, err := strconv.ParseInt(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		return kilobytes << 10, err
	}
	return 0, fmt.Errorf("%s has no VmRSS", path)
}

// readCPU is the CPU time of this process so far.
func readCPU() (time.Duration, error) {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// filesBeside are more than the files that are open beside those of agents.
const filesBeside = 500

// raiseFileLimit lets this process have the connections of so many agents: two each. The programs
// that it starts have fewer.
func raiseFileLimit(agents int) error {
	need := uint64(2*agents + filesBeside)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	if limit.Cur >= need {
		return nil
	}
	raised := unix.Rlimit{Cur: need, Max: max(limit.Max, need)}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &raised); err != nil {
		return fmt.Errorf("%d agents need %d open files, and this process may have %d: run 'ulimit -n %d' before, as root if it is refused, or measure fewer with -agents: %w",
			agents, need, limit.Max, need, err)
	}
	return nil
}
