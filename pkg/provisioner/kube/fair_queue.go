package kube

import (
	"slices"
	"time"
)

// fairQueue holds items in flows and serves the flows in turn. It is not safe
// for concurrent use.
type fairQueue[T comparable] struct {
	flows map[string]*flow[T]
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
	return &fairQueue[T]{flows: make(map[string]*flow[T]), width: width}
}

// push adds an item to the end of its flow.
func (q *fairQueue[T]) push(name string, item T) {
	f := q.flow(name)
	q.insert(f, len(f.items), item)
}

// pushBack puts an item back that was taken, in front of its flow, which then waits at least until
// that time.
func (q *fairQueue[T]) pushBack(name string, item T, notBefore time.Time) {
	f := q.flow(name)
	q.insert(f, 0, item)
	if notBefore.After(f.notBefore) {
		f.notBefore = notBefore
	}
}

func (q *fairQueue[T]) flow(name string) *flow[T] {
	f := q.flows[name]
	if f == nil {
		f = &flow[T]{name: name}
		q.flows[name] = f
	}
	return f
}

func (q *fairQueue[T]) insert(f *flow[T], at int, item T) {
	if len(f.items) == 0 {
		q.rotation = append(q.rotation, f)
	}
	f.items = slices.Insert(f.items, at, item)
	q.size++
}

// pop takes the next item. If none is available, wait is how long until one may be taken, or 0
// if only a push or a done can change that.
func (q *fairQueue[T]) pop(now time.Time) (name string, item T, ok bool, wait time.Duration) {
	for range len(q.rotation) {
		f := q.rotation[0]
		q.rotation = q.rotation[1:]
		switch rest := f.notBefore.Sub(now); {
		case f.out >= q.width:
		case rest > 0:
			if wait == 0 || rest < wait {
				wait = rest
			}
		default:
			item = f.items[0]
			f.items = f.items[1:]
			f.out++
			q.size--
			if len(f.items) > 0 {
				q.rotation = append(q.rotation, f)
			}
			return f.name, item, true, 0
		}
		q.rotation = append(q.rotation, f)
	}
	return "", item, false, wait
}

// done says that an item that was taken is dealt with.
func (q *fairQueue[T]) done(name string) {
	if f := q.flows[name]; f != nil {
		f.out--
		q.removeIfEmpty(f)
	}
}

// remove takes an item that has not been taken yet.
func (q *fairQueue[T]) remove(name string, item T) bool {
	f := q.flows[name]
	if f == nil {
		return false
	}
	i := slices.Index(f.items, item)
	if i < 0 {
		return false
	}
	f.items = slices.Delete(f.items, i, i+1)
	q.size--
	if len(f.items) == 0 {
		q.rotation = slices.DeleteFunc(q.rotation, func(other *flow[T]) bool { return other == f })
	}
	q.removeIfEmpty(f)
	return true
}

func (q *fairQueue[T]) removeIfEmpty(f *flow[T]) {
	if f.out == 0 && len(f.items) == 0 {
		delete(q.flows, f.name)
	}
}
