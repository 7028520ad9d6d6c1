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
	e.prev = after
	if after == nil {
		e.next = l.first
		l.first = e
	} else {
		e.next = after.next
		after.next = e
	}
	if e.next == nil {
		l.last = e
	} else {
		e.next.prev = e
	}
	l.len++
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
