package journal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

const (
	// capacity is how many calls are remembered.
	capacity = 4096
	// maxText is how much of a call's lines is told, in bytes: the last ones.
	maxText = 256 << 10
)

// Journal remembers calls. It may be used by many goroutines at a time.
type Journal struct {
	dataDir string

	mu sync.Mutex
	// ring holds the calls in the order of their ends; next is where the oldest one
	// is, or will be put the next one.
	ring []entry
	next int
}

// entry is a call and how long its instance's log was when it had ended.
type entry struct {
	account invocation.Account
	length  int64
}

// New makes an empty Journal for the logs below a data folder.
func New(dataDir string) *Journal { return &Journal{dataDir: dataDir} }

// Note remembers a call that has ended.
func (j *Journal) Note(account invocation.Account) {
	e := entry{account: account}
	if account.CID != "" {
		// os.Stat would allocate, and every call comes by here.
		var stat syscall.Stat_t
		if syscall.Stat(j.log(account), &stat) == nil {
			e.length = stat.Size
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.ring) < capacity {
		j.ring = append(j.ring, e)
		return
	}
	j.ring[j.next] = e
	j.next = (j.next + 1) % capacity
}

func (j *Journal) log(a invocation.Account) string {
	return filepath.Join(instancelog.Dir(j.dataDir, a.Function), instancelog.FunctionFile(a.CID))
}

// Tell tells of a call; false if it is not remembered.
func (j *Journal) Tell(id invocation.ID) (invocation.Story, bool) {
	of, from, shared, known := j.find(id)
	if !known {
		return invocation.Story{}, false
	}
	story := invocation.Story{Account: &of.account}
	if of.account.CID == "" {
		return story, true
	}
	text, err := read(j.log(of.account), max(from, of.length-maxText), of.length)
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
func (j *Journal) find(id invocation.ID) (of entry, from int64, shared int, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.ring {
		if e.account.ID == id {
			of, known = e, true
		}
	}
	if !known || of.account.CID == "" {
		return of, 0, 0, known
	}
	var last time.Time
	for _, e := range j.ring {
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

// read reads a part of a file.
func read(path string, from, to int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, from, to-from))
}
