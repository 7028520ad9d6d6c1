package decisionlog

import (
	"container/list"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

// Bounds limit the number of entries.
type Bounds struct {
	// PerFunction must be at least 1, and Total at least that.
	PerFunction, Total int
}

// DefaultBounds keep the last 33 decisions of a function, a few kilobytes, and a megabyte in
// total.
func DefaultBounds() Bounds { return Bounds{PerFunction: 33, Total: 2048} }

// Log is the history of many functions. It is not safe for concurrent use.
type Log struct {
	bounds Bounds
	total  int
	// byFunction is keyed by the functions' UIDs; recent has the function with the latest
	// decision in front.
	byFunction map[string]*list.Element
	recent     *list.List
}

// functionLog is the history of one function, the oldest entry first. It is never
// empty.
type functionLog struct {
	uid     string
	entries []*Entry
}

// NewLog makes an empty Log.
func NewLog(bounds Bounds) *Log {
	return &Log{bounds: bounds, byFunction: make(map[string]*list.Element), recent: list.New()}
}

// Add adds a decision on a function and sets its Number, Until and Times. A decision that only
// says that no call waits does not become a function's first entry.
func (b *Log) Add(uid string, e Entry) {
	e.Until, e.Times, e.Number = e.At, 1, 1
	at, known := b.byFunction[uid]
	if !known {
		if e.Decision.Why == autoscaler.ReasonNoDemand && !e.changed() {
			return
		}
		b.byFunction[uid] = b.recent.PushFront(&functionLog{uid: uid, entries: []*Entry{&e}})
		b.total++
		b.trim()
		return
	}
	b.recent.MoveToFront(at)
	c := at.Value.(*functionLog)
	last := c.entries[len(c.entries)-1]
	e.Number = last.Number + 1
	if e.repeats(last) {
		e.Number, e.At, e.Times = last.Number, last.At, last.Times+1
		*last = e
		return
	}
	c.entries = append(c.entries, &e)
	b.total++
	if len(c.entries) > b.bounds.PerFunction {
		b.dropFirst(at)
	}
	b.trim()
}

// trim keeps the total within bounds: the function with the oldest last decision loses its
// oldest entry.
func (b *Log) trim() {
	for b.total > b.bounds.Total {
		b.dropFirst(b.recent.Back())
	}
}

func (b *Log) dropFirst(at *list.Element) {
	c := at.Value.(*functionLog)
	copy(c.entries, c.entries[1:])
	c.entries[len(c.entries)-1] = nil
	c.entries = c.entries[:len(c.entries)-1]
	b.total--
	if len(c.entries) == 0 {
		b.recent.Remove(at)
		delete(b.byFunction, c.uid)
	}
}

// Remove drops a function's history.
func (b *Log) Remove(uid string) {
	if at, known := b.byFunction[uid]; known {
		b.total -= len(at.Value.(*functionLog).entries)
		b.recent.Remove(at)
		delete(b.byFunction, uid)
	}
}

// Last are the last n entries of a function, the oldest first. They are copies.
func (b *Log) Last(uid string, n int) []Entry {
	at, known := b.byFunction[uid]
	if !known || n <= 0 {
		return nil
	}
	entries := at.Value.(*functionLog).entries
	entries = entries[max(0, len(entries)-n):]
	copies := make([]Entry, len(entries))
	for i, e := range entries {
		copies[i] = *e
	}
	return copies
}

// Notable is the last entry of a function that changed the number of instances at that time or later, or
// else its last entry; false if it has none.
func (b *Log) Notable(uid string, since time.Time) (Entry, bool) {
	at, known := b.byFunction[uid]
	if !known {
		return Entry{}, false
	}
	entries := at.Value.(*functionLog).entries
	for _, e := range slices.Backward(entries) {
		if e.Until.Before(since) {
			break
		}
		if e.changed() {
			return *e, true
		}
	}
	return *entries[len(entries)-1], true
}

// Recent returns at most n functions with a decision at that time or later, the latest first,
// and how many more there are.
func (b *Log) Recent(since time.Time, n int) (uids []string, more int) {
	for at := b.recent.Front(); at != nil; at = at.Next() {
		c := at.Value.(*functionLog)
		if c.entries[len(c.entries)-1].Until.Before(since) {
			break
		}
		if len(uids) < n {
			uids = append(uids, c.uid)
		} else {
			more++
		}
	}
	return uids, more
}
