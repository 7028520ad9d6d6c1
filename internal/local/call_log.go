package local

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

const (
	// maxCalls is how many calls are remembered.
	maxCalls = 4096
	// maxText bounds the lines of one call, in bytes: the last ones are kept.
	maxText = 256 << 10
)

// callLog remembers the last calls, and which lines of their instances' logs belong to them.
//
// The processes of instances write their logs directly, without times. So it records the
// length of the log when a call of the instance ends: the lines between the ends of two calls
// belong to the later one. Calls that an instance ran at the same time share their lines. No
// instance has the name of one of an earlier run (see risingEpochs), so each log begins with its
// instance.
//
// It holds maxCalls calls; the oldest are dropped. Of an instance that still has calls it knows where
// the last dropped one ended, since the lines of the next one begin there. It is safe for
// concurrent use.
type callLog struct {
	dataDir string
	// sizeOf returns how long the log of an instance is; false if the instance does not run.
	sizeOf func(invocation.FunctionKey, invocation.CID) (int64, bool)

	mu sync.Mutex
	// ring holds the calls in the order of their ends; next is where the oldest one
	// is, or will be put the next one.
	ring []endedCall
	next int
	// instances are those that have calls in the ring.
	instances map[instance]*kept
}

// instance names one of all instances.
type instance struct {
	function invocation.FunctionKey
	cid      invocation.CID
}

// kept is how many calls of an instance are in the ring, and of those that were dropped when the last
// one ended, and how long the log was.
type kept struct {
	calls  int
	ended  time.Time
	length int64
}

// endedCall is a call and how long its instance's log was when it had ended.
type endedCall struct {
	account invocation.Record
	length  int64
}

func (e *endedCall) instance() instance { return instance{e.account.Function, e.account.CID} }

// newCallLog makes an empty callLog for the logs below a data folder.
func newCallLog(dataDir string, sizeOf func(invocation.FunctionKey, invocation.CID) (int64, bool)) *callLog {
	return &callLog{dataDir: dataDir, sizeOf: sizeOf, instances: make(map[instance]*kept)}
}

// Add remembers a call that has ended.
func (l *callLog) Add(account invocation.Record) {
	e := endedCall{account: account}
	if account.CID != "" {
		e.length = l.length(account)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.account.CID != "" {
		k := l.instances[e.instance()]
		if k == nil {
			k = &kept{}
			l.instances[e.instance()] = k
		}
		k.calls++
	}
	if len(l.ring) < maxCalls {
		l.ring = append(l.ring, e)
		return
	}
	l.drop(&l.ring[l.next])
	l.ring[l.next] = e
	l.next = (l.next + 1) % maxCalls
}

// length is how long the log of a call's instance is; 0 if there is none.
func (l *callLog) length(a invocation.Record) int64 {
	if size, runs := l.sizeOf(a.Function, a.CID); runs {
		return size
	}
	info, err := os.Stat(l.log(a))
	if err != nil {
		return 0
	}
	return info.Size()
}

// drop drops a call, and its instance with the last one.
func (l *callLog) drop(e *endedCall) {
	if e.account.CID == "" {
		return
	}
	k := l.instances[e.instance()]
	if k.calls--; k.calls == 0 {
		delete(l.instances, e.instance())
		return
	}
	if e.account.Ended.After(k.ended) {
		k.ended, k.length = e.account.Ended, e.length
	}
}

func (l *callLog) log(a invocation.Record) string {
	return filepath.Join(instancelog.Dir(l.dataDir, a.Function), instancelog.FunctionFile(a.CID))
}

// LookUp returns the timeline and log lines of a call; false if the log has no such call.
func (l *callLog) LookUp(id invocation.ID) (invocation.Findings, bool) {
	of, begin, known := l.find(id)
	if !known {
		return invocation.Findings{}, false
	}
	story := invocation.Findings{Record: &of.account}
	if of.account.CID == "" {
		return story, true
	}
	from := begin.length
	text, err := readPart(l.log(of.account), max(from, of.length-maxText), of.length)
	switch {
	case err != nil:
		story.Notes = append(story.Notes, fmt.Sprintf("the log of instance %s cannot be read: %v", of.account.CID, err))
	case of.length-from > maxText:
		story.Notes = append(story.Notes, fmt.Sprintf("these are the last %d KiB of what was written until the call's end", maxText>>10))
	}
	if begin.shared > 0 {
		story.Notes = append(story.Notes, fmt.Sprintf("the instance ran %d other calls at the same time, whose lines are among these", begin.shared))
	}
	if begin.unsure {
		story.Notes = append(story.Notes, fmt.Sprintf("lines of earlier calls may be among these: only the last %d calls are remembered", maxCalls))
	}
	for line := range bytes.Lines(text) {
		story.Lines = append(story.Lines, invocation.Line{Source: string(of.account.CID), Text: string(bytes.TrimRight(line, "\r\n"))})
	}
	return story, true
}

// beginning is where in its instance's log the lines of a call begin.
type beginning struct {
	length int64
	// shared is how many calls the instance ran beside it.
	shared int
	// unsure says that lines of calls that were dropped may come after that.
	unsure bool
}

// find finds a call and where its lines begin.
func (l *callLog) find(id invocation.ID) (of endedCall, begin beginning, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ring {
		if e.account.ID == id {
			of, known = e, true
		}
	}
	if !known || of.account.CID == "" {
		return of, begin, known
	}
	var last time.Time
	for _, e := range l.ring {
		a := e.account
		if a.ID == id || e.instance() != of.instance() {
			continue
		}
		switch {
		case !a.Claimed.Before(of.account.Ended):
		case a.Ended.After(of.account.Claimed):
			begin.shared++
		case a.Ended.After(last):
			last, begin.length = a.Ended, e.length
		}
	}
	switch dropped := l.instances[of.instance()]; {
	case !dropped.ended.After(last):
	case dropped.ended.After(of.account.Claimed):
		begin.unsure = true
	default:
		begin.length = dropped.length
	}
	begin.length = min(begin.length, of.length)
	return of, begin, true
}

// readPart reads a part of a file.
func readPart(path string, from, to int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, from, to-from))
}
