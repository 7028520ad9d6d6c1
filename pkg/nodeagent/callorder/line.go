package callorder

import (
	"math"
	"slices"
	"strings"
	"time"
)

// namespace is a namespace with its line: the calls that wait for a ticket, as a heap with the
// smallest key first.
type namespace struct {
	name      string
	instances int
	line      []*instance
	begun     int // calls in the line that have begun

	spent   float64 // processor time in nanoseconds, forgotten with the constant shareOver
	spentAt time.Duration
}

// Shares between namespaces: one that has computed shareSlack times its equal share of the
// last shareOver goes behind the others that wait. The slack keeps the order of calls between
// namespaces that use about the same.
const (
	shareOver  = 10 * time.Second
	shareSlack = 1.1
)

// namespaces are sorted by name, so that sums over them do not depend on chance.
type namespaces []*namespace

// of finds or begins a namespace.
func (all *namespaces) of(name string) *namespace {
	at, found := slices.BinarySearchFunc(*all, name, func(n *namespace, name string) int {
		return strings.Compare(n.name, name)
	})
	if !found {
		*all = slices.Insert(*all, at, &namespace{name: name})
	}
	return (*all)[at]
}

// leftBy notes that one of the namespace's instances is gone.
func (all *namespaces) leftBy(n *namespace) {
	n.instances--
	if n.instances == 0 {
		*all = slices.DeleteFunc(*all, func(other *namespace) bool { return other == n })
	}
}

// charge notes that the namespace has computed.
func (n *namespace) charge(now, used time.Duration) {
	n.spent = n.spentBy(now) + float64(used)
	n.spentAt = now
}

// spentBy is what the namespace has computed of late.
func (n *namespace) spentBy(now time.Duration) float64 {
	return n.spent * math.Exp(-float64(now-n.spentAt)/float64(shareOver))
}

// first returns the call that gets the next ticket, or nil. Namespaces above their share go
// behind the others; between equals, the smallest key is first.
func (all namespaces) first(now time.Duration) *instance {
	share := all.equalShare(now)
	var first *instance
	var over bool
	for _, n := range all {
		if len(n.line) == 0 {
			continue
		}
		above := n.spentBy(now) > share
		if i := n.line[0]; first == nil || !above && over || above == over && before(i, first) {
			first, over = i, above
		}
	}
	return first
}

// equalShare is what each namespace that waits may have computed before it goes behind the
// others.
func (all namespaces) equalShare(now time.Duration) float64 {
	sum, waiting := 0.0, 0
	for _, n := range all {
		if len(n.line) > 0 {
			sum += n.spentBy(now)
			waiting++
		}
	}
	if waiting < 2 {
		return math.Inf(1)
	}
	return shareSlack * sum / float64(waiting)
}

// before says whether a is before b: by keys, then by when the node received the calls.
func before(a, b *instance) bool {
	switch {
	case a.key != b.key:
		return a.key < b.key
	case a.received != b.received:
		return a.received < b.received
	}
	return a.id < b.id
}

// add puts a call into the line.
func (n *namespace) add(i *instance) {
	if i.phase == preempted {
		n.begun++
	}
	i.place = len(n.line)
	n.line = append(n.line, i)
	n.up(i.place)
}

// cancel takes a call out of the line.
func (n *namespace) cancel(i *instance) {
	if i.phase == preempted {
		n.begun--
	}
	at, last := i.place, len(n.line)-1
	n.exchange(at, last)
	n.line[last] = nil
	n.line = n.line[:last]
	if at < last {
		n.up(at)
		n.down(at)
	}
}

func (n *namespace) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if !before(n.line[at], n.line[parent]) {
			return
		}
		n.exchange(at, parent)
		at = parent
	}
}

func (n *namespace) down(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(n.line); child++ {
			if before(n.line[child], n.line[least]) {
				least = child
			}
		}
		if least == at {
			return
		}
		n.exchange(at, least)
		at = least
	}
}

func (n *namespace) exchange(a, b int) {
	n.line[a], n.line[b] = n.line[b], n.line[a]
	n.line[a].place, n.line[b].place = a, b
}
