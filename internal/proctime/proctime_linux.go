package proctime

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU is the CPU time of a process.
func CPU(pid int) (time.Duration, error) {
	const allThreads = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|allThreads), &at); err != nil {
		return 0, fmt.Errorf("the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// Delay is how long the threads of a process that have not ended were ready to run and had to wait
// for a core of the machine.
func Delay(pid int) (time.Duration, error) {
	var sum time.Duration
	err := eachThread(pid, "schedstat", func(stat []byte) error {
		// Its fields are the time on a core, the time of waiting for one, and the number of turns.
		fields := bytes.Fields(stat)
		if len(fields) < 2 {
			return fmt.Errorf("%q has no time of waiting", stat)
		}
		waited, err := strconv.ParseInt(string(fields[1]), 10, 64)
		sum += time.Duration(waited)
		return err
	})
	return sum, err
}

// Switches are the context switches of a process, voluntary or not.
func Switches(pid int) (int64, error) {
	var sum int64
	err := eachThread(pid, "status", func(status []byte) error {
		for line := range bytes.Lines(status) {
			name, value, _ := bytes.Cut(line, []byte{':'})
			if bytes.HasSuffix(name, []byte("voluntary_ctxt_switches")) {
				n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
				if err != nil {
					return err
				}
				sum += n
			}
		}
		return nil
	})
	return sum, err
}

// eachThread reads a file of each thread of a process.
func eachThread(pid int, name string, read func(content []byte) error) error {
	threads := fmt.Sprintf("/proc/%d/task", pid)
	entries, err := os.ReadDir(threads)
	if err != nil {
		return fmt.Errorf("the threads of process %d: %w", pid, err)
	}
	found, buffer := false, make([]byte, maxFile)
	for _, thread := range entries {
		file := threads + "/" + thread.Name() + "/" + name
		n, err := readOnce(file, buffer)
		if err != nil {
			// That thread has ended meanwhile.
			continue
		}
		found = true
		if err := read(buffer[:n]); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	if !found {
		return fmt.Errorf("no thread of process %d has %s", pid, name)
	}
	return nil
}

// maxFile is more than is in a thread's file, in bytes.
const maxFile = 8 << 10

// readOnce reads a file whose whole text the kernel writes at once. It makes three system calls, where
// os.ReadFile makes nine to be ready for files of all kinds.
func readOnce(file string, into []byte) (int, error) {
	fd, err := unix.Open(file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.Read(fd, into)
}
