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
// It holds maxCalls calls; the oldest are dropped. It is safe for concurrent use.
type callLog struct {
	dataDir string

	mu sync.Mutex
	// ring holds the calls in the order of their ends; next is where the oldest one
	// is, or will be put the next one.
	ring []endedCall
	next int
}

// endedCall is a call and how long its instance's log was when it had ended.
type endedCall struct {
	account invocation.Record
	length  int64
}

// newCallLog makes an empty callLog for the logs below a data folder.
func newCallLog(dataDir string) *callLog { return &callLog{dataDir: dataDir} }

// Add remembers a call that has ended.
func (l *callLog) Add(account invocation.Record) {
	e := endedCall{account: account}
	if account.CID != "" {
		e.length = sizeOf(l.log(account))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) < maxCalls {
		l.ring = append(l.ring, e)
		return
	}
	l.ring[l.next] = e
	l.next = (l.next + 1) % maxCalls
}

func (l *callLog) log(a invocation.Record) string {
	return filepath.Join(instancelog.Dir(l.dataDir, a.Function), instancelog.FunctionFile(a.CID))
}

// LookUp returns the timeline and log lines of a call; false if the log has no such call.
func (l *callLog) LookUp(id invocation.ID) (invocation.Report, bool) {
	of, from, shared, known := l.find(id)
	if !known {
		return invocation.Report{}, false
	}
	story := invocation.Report{Record: &of.account}
	if of.account.CID == "" {
		return story, true
	}
	text, err := readPart(l.log(of.account), max(from, of.length-maxText), of.length)
	switch {
	case err != nil:
		story.Notes = append(story.Notes, fmt.Sprintf("the log of instance %s cannot be read: %v", of.account.CID, err))
	case of.length-from > maxText:
		story.Notes = append(story.Notes, fmt.Sprintf("these are the last %d KiB of what was written until the call's end", maxText>>10))
	}
	if shared > 0 {
		story.Notes = append(story.Notes, fmt.Sprintf("the instance ran %d other calls at the same time, whose lines are among these", shared))
	}
	for line := range bytes.Lines(text) {
		story.Lines = append(story.Lines, invocation.Line{Source: string(of.account.CID), Text: string(bytes.TrimRight(line, "\r\n"))})
	}
	return story, true
}

// find finds a call; where in its instance's log its lines begin; and how many calls
// the instance ran beside it.
func (l *callLog) find(id invocation.ID) (of endedCall, from int64, shared int, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.ring {
		if e.account.ID == id {
			of, known = e, true
		}
	}
	if !known || of.account.CID == "" {
		return of, 0, 0, known
	}
	var last time.Time
	for _, e := range l.ring {
		a := e.account
		if a.ID == id || a.CID != of.account.CID || a.Function != of.account.Function {
			continue
		}
		switch {
		case !a.Claimed.Before(of.account.Ended):
		case a.Ended.After(of.account.Claimed):
			shared++
		case a.Ended.After(last):
			last, from = a.Ended, e.length
		}
	}
	return of, min(from, of.length), shared, true
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
