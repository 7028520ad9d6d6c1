package kube

import (
	"slices"
	"time"
)

// fairQueue holds items in flows and serves the flows in turn. It is not safe
// for concurrent use.
type fairQueue[T comparable] struct {
	lanes map[string]*flow[T]
	// rotation are the flows that hold items; the first is next.
	rotation []*flow[T]
	size     int
	// width is how many items of one flow may be out at a time.
	width int
}

type flow[T comparable] struct {
	name  string
	items []T
	// out are the items that were taken and are not done.
	out       int
	notBefore time.Time
}

func newFairQueue[T comparable](width int) *fairQueue[T] {
	return &fairQueue[T]{lanes: make(map[string]*flow[T]), width: width}
}

// push adds an item to the end of its flow.
func (q *fairQueue[T]) push(name string, item T) {
	l := q.flow(name)
	q.insert(l, len(l.items), item)
}

// pushBack puts an item back that was taken, in front of its flow, which then
// waits.
func (q *fairQueue[T]) pushBack(name string, item T, notBefore time.Time) {
	l := q.flow(name)
	q.insert(l, 0, item)
	l.notBefore = notBefore
}

func (q *fairQueue[T]) flow(name string) *flow[T] {
	l := q.lanes[name]
	if l == nil {
		l = &flow[T]{name: name}
		q.lanes[name] = l
	}
	return l
}

func (q *fairQueue[T]) insert(l *flow[T], at int, item T) {
	if len(l.items) == 0 {
		q.rotation = append(q.rotation, l)
	}
	l.items = slices.Insert(l.items, at, item)
	q.size++
}

// pop takes the next item. If none is available, wait is how long until one may be taken, or 0
// if only a push or a done can change that.
func (q *fairQueue[T]) pop(now time.Time) (name string, item T, ok bool, wait time.Duration) {
	for range len(q.rotation) {
		l := q.rotation[0]
		q.rotation = q.rotation[1:]
		switch rest := l.notBefore.Sub(now); {
		case l.out >= q.width:
		case rest > 0:
			if wait == 0 || rest < wait {
				wait = rest
			}
		default:
			item = l.items[0]
			l.items = l.items[1:]
			l.out++
			q.size--
			if len(l.items) > 0 {
				q.rotation = append(q.rotation, l)
			}
			return l.name, item, true, 0
		}
		q.rotation = append(q.rotation, l)
	}
	return "", item, false, wait
}

// done says that an item that was taken is dealt with.
func (q *fairQueue[T]) done(name string) {
	if l := q.lanes[name]; l != nil {
		l.out--
		q.removeIfEmpty(l)
	}
}

// remove takes an item that has not been taken yet.
func (q *fairQueue[T]) remove(name string, item T) bool {
	l := q.lanes[name]
	if l == nil {
		return false
	}
	i := slices.Index(l.items, item)
	if i < 0 {
		return false
	}
	l.items = slices.Delete(l.items, i, i+1)
	q.size--
	if len(l.items) == 0 {
		q.rotation = slices.DeleteFunc(q.rotation, func(other *flow[T]) bool { return other == l })
	}
	q.removeIfEmpty(l)
	return true
}

func (q *fairQueue[T]) removeIfEmpty(l *flow[T]) {
	if l.out == 0 && len(l.items) == 0 {
		delete(q.lanes, l.name)
	}
}
