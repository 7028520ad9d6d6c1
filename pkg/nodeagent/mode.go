package nodeagent

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/pkg/nodeagent/cgroups"
)

// ModeParams say when a node is busy.
type ModeParams struct {
	// Every is the time between two samples. While the node is calm and none of the last samples
	// was above, it is CalmEvery: each sample costs a wake-up.
	Every, CalmEvery time.Duration
	// Above samples of the last Of make the node busy if more threads want to run then than
	// there are cores.
	Above, Of int
	// CalmAfter is how long that must not have been so before the node is calm again.
	CalmAfter time.Duration
}

func (p ModeParams) validate() error {
	if p.Every <= 0 || p.CalmEvery < p.Every || p.Above < 1 || p.Of < p.Above || p.CalmAfter < 0 {
		return fmt.Errorf("nodeagent: Mode is %+v: Every must be positive, CalmEvery at least Every, Above from 1 to Of, and CalmAfter not negative", p)
	}
	return nil
}

// mode decides whether the node is busy.
type mode struct {
	params ModeParams
	recent []bool // the last samples: whether more wanted to run than there are cores
	busy   bool
	last   time.Duration // when the node was busy for the last time
}

// observe takes in a sample and reports whether the mode has changed.
func (m *mode) observe(now time.Duration, above bool) (changed bool) {
	if len(m.recent) == m.params.Of {
		m.recent = append(m.recent[:0], m.recent[1:]...)
	}
	m.recent = append(m.recent, above)
	n := 0
	for _, is := range m.recent {
		if is {
			n++
		}
	}
	before := m.busy
	if n >= m.params.Above {
		m.busy, m.last = true, now
	} else if now-m.last >= m.params.CalmAfter {
		m.busy = false
	}
	return m.busy != before
}

// pause is the time until the next sample.
func (m *mode) pause() time.Duration {
	if m.busy || slices.Contains(m.recent, true) {
		return m.params.Every
	}
	return m.params.CalmEvery
}

// LoadAvg reads how many threads want to run, for one goroutine at a time.
type LoadAvg struct {
	file   *cgroups.Readable
	buffer [128]byte
}

// OpenLoadAvg opens /proc/loadavg, or a file like it.
func OpenLoadAvg(path string) (*LoadAvg, error) {
	file, err := cgroups.OpenReadable(path)
	if err != nil {
		return nil, err
	}
	return &LoadAvg{file: file}, nil
}

// Close closes the file.
func (l *LoadAvg) Close() error { return l.file.Close() }

// Runnable is the number of threads that run or want to, without the one that asks:
//
//	0.20 0.18 0.12 3/80 11206
func (l *LoadAvg) Runnable() (int, error) {
	n, err := l.file.ReadAt(l.buffer[:], 0)
	if n == 0 {
		return 0, err
	}
	before, _, found := bytes.Cut(l.buffer[:n], []byte("/"))
	if !found {
		return 0, errors.New("nodeagent: the load average has no number of threads")
	}
	running, err := strconv.Atoi(string(before[bytes.LastIndexByte(before, ' ')+1:]))
	return max(0, running-1), err
}
