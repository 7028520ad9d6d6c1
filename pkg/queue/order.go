package queue

// ticketList is a list of waiting entries in order of arrival.
type ticketList struct {
	first, last *entry
	len         int
}

func (e *entry) before(other *entry) bool {
	if !e.ticket.Arrived.Equal(other.ticket.Arrived) {
		return e.ticket.Arrived.Before(other.ticket.Arrived)
	}
	return e.seq < other.seq
}

// insert puts an entry in its place. New tickets belong at or near the end
// and tickets that come back at or near the front, so both ends are tried
// before the walk.
func (l *ticketList) insert(e *entry) {
	after := l.last
	if l.first != nil && e.before(l.first) {
		after = nil
	}
	for after != nil && e.before(after) {
		after = after.prev
	}
	before := l.first
	if after != nil {
		before = after.next
	}
	l.insertBefore(e, before)
}

// insertBefore puts an entry in front of one of the list, or at the end if that
// is nil.
func (l *ticketList) insertBefore(e, at *entry) {
	e.next = at
	if at == nil {
		e.prev, l.last = l.last, e
	} else {
		e.prev, at.prev = at.prev, e
	}
	if e.prev == nil {
		l.first = e
	} else {
		e.prev.next = e
	}
	l.len++
}

// absorb moves all of another list to their places in this one.
func (l *ticketList) absorb(other *ticketList) {
	at := l.first
	for e := other.first; e != nil; e = other.first {
		other.remove(e)
		for at != nil && at.before(e) {
			at = at.next
		}
		l.insertBefore(e, at)
	}
}

func (l *ticketList) remove(e *entry) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// askHeap is a heap of asking instances, the alphabetically first CID on top.
type askHeap []*instance

func (h askHeap) Len() int           { return len(h) }
func (h askHeap) Less(i, j int) bool { return h[i].cid < h[j].cid }

func (h askHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for container/heap only.
func (h *askHeap) Push(x any) {
	in := x.(*instance)
	in.index = len(*h)
	*h = append(*h, in)
}

// Pop is for container/heap only.
func (h *askHeap) Pop() any {
	old := *h
	in := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	in.index = -1
	return in
}
