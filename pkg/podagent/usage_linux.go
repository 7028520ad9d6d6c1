package podagent

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// usage is the CPU time that this process has used and the memory that it has, in
// bytes; what cannot be known is 0.
func usage() (cpu time.Duration, resident uint64) {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) == nil {
		cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	statm, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(statm); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseUint(string(fields[1]), 10, 64)
		resident = pages * uint64(os.Getpagesize())
	}
	return cpu, resident
}
