package cgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// limitsFor is how often a group's waits are read before its containers are looked for again.
const limitsFor = 10

// waitFiles are the files that say how long a group waited. They stay open, as they are read 10 times a second: without
// that it were some five system calls for each, which may wait.
type waitFiles struct {
	kernel kernel
	total  file // cpu.pressure, or cpu.stat of version 1; nil before it is read
	// limits are cpu.stat of the group and of the containers in it, and reads is how often they were read.
	limits []file
	reads  int
	buffer []byte
}

// text is what a file has now.
func (w *waitFiles) text(f file) (string, error) {
	if w.buffer == nil {
		w.buffer = make([]byte, 4096)
	}
	n, err := f.ReadAt(w.buffer, 0)
	if n == 0 {
		return "", err
	}
	return string(w.buffer[:n]), nil
}

// totalOf is what the file with the total has now.
func (w *waitFiles) totalOf(path string) (text string, err error) {
	if w.total == nil {
		if w.total, err = w.kernel.open(path, os.O_RDONLY); err != nil {
			return "", err
		}
	}
	return w.text(w.total)
}

// throttled is for how long limits of a group and of the containers in it have kept them from running.
func (w *waitFiles) throttled(dir string) (sum time.Duration, err error) {
	if w.reads%limitsFor == 0 {
		err = w.findLimits(dir)
	}
	w.reads++
	for _, f := range w.limits {
		// A group without a limit counts nothing, and one may go at any time.
		text, failed := w.text(f)
		if failed != nil {
			continue
		}
		if part, failed := fieldOf(text, "throttled_usec", time.Microsecond); failed == nil {
			sum += part
		}
	}
	return sum, err
}

// findLimits opens the files of the containers that are there now.
func (w *waitFiles) findLimits(dir string) error {
	err := w.closeLimits()
	paths, failed := filepath.Glob(filepath.Join(dir, "*", statFile))
	err = errors.Join(err, failed)
	for _, path := range append(paths, filepath.Join(dir, statFile)) {
		f, failed := w.kernel.open(path, os.O_RDONLY)
		if failed == nil {
			w.limits = append(w.limits, f)
		} else if !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (w *waitFiles) closeLimits() (err error) {
	for _, f := range w.limits {
		err = errors.Join(err, f.Close())
	}
	w.limits = nil
	return err
}

func (w *waitFiles) close() error {
	err := w.closeLimits()
	if w.total != nil {
		err = errors.Join(err, w.total.Close())
	}
	return err
}

// fieldOf is a number of a text with a name and a number in each line.
func fieldOf(text, name string, unit time.Duration) (time.Duration, error) {
	for line := range strings.Lines(text) {
		number, found := strings.CutPrefix(strings.TrimSpace(line), name+" ")
		if found {
			n, err := strconv.ParseInt(number, 10, 64)
			return time.Duration(n) * unit, err
		}
	}
	return 0, fmt.Errorf("cgroups: %s is not in %q", name, text)
}
