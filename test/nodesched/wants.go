package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wantsFile has, in the folder of a node, how many of its calls want to compute. Functions count themselves, in memory that
// they share with the node agent. To look at the threads of pods took a tenth of a core, and only from nodes with a node agent.
const wantsFile = "wants"

// openWants opens the number of a file.
func openWants(path string) (*atomic.Int64, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	size := int(unsafe.Sizeof(atomic.Int64{}))
	memory, err := []byte(nil), f.Truncate(int64(size))
	if err == nil {
		memory, err = unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return (*atomic.Int64)(unsafe.Pointer(&memory[0])), nil
}

// wantsOf is where the process group of an instance finds the number of its node.
func wantsOf(notes string, group int) string {
	return filepath.Join(notes, fmt.Sprint("wants-", group))
}

// ownWants is the number of this function's node, or of its own if the harness has no nodes. A function is on its node once
// it has a call.
func ownWants() (*atomic.Int64, error) {
	notes := os.Getenv(notesVariable)
	if notes == "" {
		return &atomic.Int64{}, nil
	}
	return openWants(wantsOf(notes, unix.Getpgrp()))
}
