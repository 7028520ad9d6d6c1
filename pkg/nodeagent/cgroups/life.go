package cgroups

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// watcherPipe is the file by which a node agent tells that it lives to the process that watches it.
const watcherPipe = 3

// What a node agent tells its watcher.
const (
	needsNobody byte = 'n' // it may be silent from now on
	needsRescue byte = 'r' // it has groups that somebody must restore if it is silent from now on
)

const (
	// lifeEvery is how often a node agent tells that it lives while it has groups to be restored.
	lifeEvery = 250 * time.Millisecond
	// silentFor is how long a watcher listens at a time, and mostSilent how often it may hear nothing: 2 s
	// in all. That is how long bands stay as a node agent left them that hangs.
	silentFor, mostSilent = 500 * time.Millisecond, 4
)

// Life tells the process that watches a node agent that it lives.
type Life struct {
	pipe    int
	journal *Journal
	told    byte
	at      time.Time
}

// NewLife returns the Life of a process that Watch has started.
func NewLife(journal *Journal) (*Life, error) { return lifeBy(watcherPipe, journal) }

func lifeBy(pipe int, journal *Journal) (*Life, error) {
	var file syscall.Stat_t
	if err := syscall.Fstat(pipe, &file); err != nil || file.Mode&syscall.S_IFMT != syscall.S_IFIFO {
		return nil, errors.New("cgroups: nobody watches this process")
	}
	// A watcher that reads nothing must not stop its node agent.
	if err := syscall.SetNonblock(pipe, true); err != nil {
		return nil, os.NewSyscallError("setnonblock", err)
	}
	return &Life{pipe: pipe, journal: journal, told: needsNobody}, nil
}

// Tell tells that the node agent lives, if that is due. watching says whether it sees to its groups and
// will tell again. One goroutine at a time calls it.
func (l *Life) Tell(now time.Time, watching bool) {
	word := needsNobody
	if watching && !l.journal.empty() {
		word = needsRescue
	}
	if word == l.told && (word == needsNobody || now.Sub(l.at) < lifeEvery) {
		return
	}
	if n, _ := syscall.Write(l.pipe, []byte{word}); n == 1 { // a full pipe says enough
		l.told, l.at = word, now
	}
}

// silence decides when a node agent that says nothing hangs.
type silence struct {
	word  byte // the last one
	times int  // how often nothing has been heard since
}

// heard takes in what came while the watcher listened for a time, and reports whether the node agent hangs. A time that is
// much longer than silentFor says that the watcher itself got no core, or the machine slept: the node agent did
// not, either, and gets that time again.
func (s *silence) heard(words []byte, listened time.Duration) (hangs bool) {
	switch {
	case len(words) > 0:
		s.word, s.times = words[len(words)-1], 0
	case listened < 2*silentFor:
		s.times++
	}
	return s.word == needsRescue && s.times >= mostSilent
}

// listen reads what a node agent tells until its end. If it hangs, it is ended once, and the error says so.
func listen(pipe *os.File, end func()) error {
	var s silence
	words := make([]byte, 64)
	for {
		var until time.Time
		if s.word == needsRescue {
			until = time.Now().Add(silentFor)
		}
		if err := pipe.SetReadDeadline(until); err != nil {
			return err
		}
		began := time.Now()
		n, err := pipe.Read(words)
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // the node agent has ended
		}
		if s.heard(words[:n], time.Since(began)) {
			end()
			_ = pipe.SetReadDeadline(time.Time{})
			_, _ = io.Copy(io.Discard, pipe)
			return fmt.Errorf("cgroups: the node agent gave no sign of life for %v, and was killed", mostSilent*silentFor)
		}
	}
}
