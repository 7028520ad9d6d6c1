package callorder

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// namespace is a namespace with its calls that wait for a ticket, in a line by key and one by size.
type namespace struct {
	name      string
	instances int
	lines     [2]line
	begun     int // calls in the lines that have begun

	// spent is processor time in nanoseconds, and kept what its calls did not use of their tickets, or of the
	// least that each counts. Both are forgotten with the constant shareOver.
	spent, kept float64
	spentAt     time.Duration
	wanted      time.Duration // when it last had a call, or computed noticeably without one
	// newcomers are the first calls of its functions.
	newcomers function
}

// Shares between namespaces: one that has taken shareSlack times its equal share of the
// last shareOver goes behind the others that wait. The slack keeps the order of calls between
// namespaces that take about the same.
const (
	shareOver  = 10 * time.Second
	shareSlack = 1.1
)

// namespaces are sorted by name, so that sums over them do not depend on chance.
type namespaces []*namespace

// of finds or begins a namespace.
func (all *namespaces) of(now time.Duration, name string) *namespace {
	all.dropGone(now)
	at, found := slices.BinarySearchFunc(*all, name, func(n *namespace, name string) int {
		return strings.Compare(n.name, name)
	})
	if !found {
		*all = slices.Insert(*all, at, &namespace{name: name, wanted: beforeAll, lines: [2]line{{by: byKey}, {by: bySize}}})
	}
	return (*all)[at]
}

// dropGone drops the namespaces that have had no instance and computed nothing for so long that their shares
// do not matter any more. One whose only instance comes again has computed what it had.
func (all *namespaces) dropGone(now time.Duration) {
	*all = slices.DeleteFunc(*all, func(n *namespace) bool { return n.instances == 0 && now-n.spentAt > 6*shareOver })
}

// charge notes that the namespace has computed.
func (n *namespace) charge(now, used time.Duration) {
	n.decay(now)
	n.spent += float64(used)
}

// keep notes that a call has kept others from computing for a time without computing itself.
func (n *namespace) keep(now, unused time.Duration) {
	n.decay(now)
	n.kept += float64(max(0, unused))
}

func (n *namespace) decay(now time.Duration) {
	rest := forgotten(now - n.spentAt)
	n.spent, n.kept, n.spentAt = n.spent*rest, n.kept*rest, now
}

// spentBy is the core time that the namespace has taken recently: what it computed, and what its calls kept from
// others.
func (n *namespace) spentBy(now time.Duration) float64 {
	return (n.spent + n.kept) * forgotten(now-n.spentAt)
}

// computedBy is the processor time that the namespace has used recently, without what its calls kept. A call may leave its
// ticket unused because instances without one compute beside it: it has kept nothing from those.
func (n *namespace) computedBy(now time.Duration) float64 {
	return n.spent * forgotten(now-n.spentAt)
}

// waiting are its calls that wait for a ticket, in no order.
func (n *namespace) waiting() []*instance { return n.lines[byKey].calls }

// first returns the call that is first in the lines of an order, or nil. Namespaces above their
// share go behind the others; between equals, the smallest is first. How long a call has waited
// before it asked is its agent's word, which counts within its namespace only.
func (c *Core) first(now time.Duration, by lineOrder) *instance {
	share := c.share(now)
	var first *instance
	var over bool
	for _, n := range c.namespaces {
		if len(n.waiting()) == 0 {
			continue
		}
		above := share.exceeded(now, n)
		if i := n.lines[by].calls[0]; first == nil || !above && over || above == over && by.beforeOther(i, first) {
			first, over = i, above
		}
	}
	return first
}

// share is what a namespace that waits may have taken of the cores before it goes behind the others, in
// nanoseconds.
type share struct {
	taken  float64 // an equal part of what those that wait have taken
	ofNode float64 // an equal part of what the node had for those that want cores
}

// share returns the share of each namespace that waits now.
func (c *Core) share(now time.Duration) share {
	sum, waiting, wanting := 0.0, 0, 0
	for _, n := range c.namespaces {
		switch {
		case len(n.waiting()) > 0:
			sum += n.spentBy(now)
			waiting++
			wanting++
		case now-n.wanted < wantsFor:
			wanting++
		}
	}
	if waiting < 2 {
		return share{math.Inf(1), math.Inf(1)}
	}
	return share{shareSlack * sum / float64(waiting), shareSlack * c.offered.by(now) / float64(wanting)}
}

// exceeded says whether a namespace is above its share. One that has no more than its part of the node is not behind
// others for having more calls than they, unless its calls keep others from computing rather than compute.
func (s share) exceeded(now time.Duration, n *namespace) bool {
	spent := n.spentBy(now)
	return spent > s.taken && (spent > s.ofNode || n.kept > n.spent)
}

// offer is the core time in nanoseconds that a node had for calls while it was busy, forgotten like what they have
// taken of it.
type offer struct {
	time float64
	at   time.Duration
}

// pass adds the time that this many cores had for calls since the last step.
func (o *offer) pass(now time.Duration, cores int) {
	rest := forgotten(now - o.at)
	o.time, o.at = o.time*rest+float64(cores)*float64(shareOver)*(1-rest), now
}

func (o offer) by(now time.Duration) float64 { return o.time * forgotten(now-o.at) }

// forgotten is what is left of a time that was spent so long ago.
func forgotten(since time.Duration) float64 { return math.Exp(-float64(since) / float64(shareOver)) }

const (
	// wantsFor is how long a namespace wants cores after its last call.
	wantsFor = time.Second
	// wantsLittle is the part of what another namespace has computed below which one's wants do not count:
	// otherwise an ask now and then would keep that one's starts behind its own calls.
	wantsLittle = 0.05
)

// above says whether a namespace has computed more than an equal share beside the others that want cores.
func (all namespaces) above(now time.Duration, n *namespace) bool {
	spent := n.computedBy(now)
	sum, wanting := spent, 1
	for _, other := range all {
		if its := other.computedBy(now); other != n && now-other.wanted < wantsFor && its > wantsLittle*spent {
			sum += its
			wanting++
		}
	}
	return wanting > 1 && spent > shareSlack*sum/float64(wanting)
}

// muchMore is how many times as much as another namespace one has computed that takes no tickets of the
// other's. Being behind in the line is enough for less.
const muchMore = 4

// usesMuchMore says whether the namespace has computed so much more than another one.
func (n *namespace) usesMuchMore(now time.Duration, than *namespace) bool {
	return n != than && n.spentBy(now) > muchMore*than.spentBy(now)
}

// lineOrder is by what calls in a line are ordered.
type lineOrder int

const (
	byKey  lineOrder = iota // by their keys
	bySize                  // by what they are expected to need
)

// line is the calls that wait for a ticket, as a heap.
type line struct {
	by    lineOrder
	calls []*instance
}

// before says whether a is before b: by keys or sizes, then by when the node received the calls.
func (o lineOrder) before(a, b *instance) bool {
	x, y := a.key, b.key
	if o == bySize {
		x, y = a.size, b.size
	}
	switch {
	case x != y:
		return x < y
	case a.received != b.received:
		return a.received < b.received
	}
	return a.id < b.id
}

// beforeOther says whether a is before b, which is of another namespace.
func (o lineOrder) beforeOther(a, b *instance) bool {
	x, y := a.proven, b.proven
	if o == bySize {
		x, y = a.size, b.size
	}
	return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.asked, b.asked), cmp.Compare(a.id, b.id)) < 0
}

// add puts a call into both lines.
func (n *namespace) add(i *instance) {
	if i.phase == preempted {
		n.begun++
	}
	for by := range n.lines {
		l := &n.lines[by]
		i.places[l.by] = len(l.calls)
		l.calls = append(l.calls, i)
		l.up(i.places[l.by])
	}
}

// cancel takes a call out of both lines.
func (n *namespace) cancel(i *instance) {
	if i.phase == preempted {
		n.begun--
	}
	for by := range n.lines {
		n.lines[by].takeOut(i)
	}
}

func (l *line) takeOut(i *instance) {
	at, last := i.places[l.by], len(l.calls)-1
	l.exchange(at, last)
	l.calls[last] = nil
	l.calls = l.calls[:last]
	if at < last {
		l.up(at)
		l.down(at)
	}
}

func (l *line) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if !l.by.before(l.calls[at], l.calls[parent]) {
			return
		}
		l.exchange(at, parent)
		at = parent
	}
}

func (l *line) down(at int) {
	for {
		least := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(l.calls); child++ {
			if l.by.before(l.calls[child], l.calls[least]) {
				least = child
			}
		}
		if least == at {
			return
		}
		l.exchange(at, least)
		at = least
	}
}

func (l *line) exchange(a, b int) {
	l.calls[a], l.calls[b] = l.calls[b], l.calls[a]
	l.calls[a].places[l.by], l.calls[b].places[l.by] = a, b
}
