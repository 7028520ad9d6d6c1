package queue

import "math/bits"

// ticketList is a list of waiting entries in order of arrival. New tickets belong at
// or near the end and tickets that come back at or near the front, which costs the
// same in a list of any length. A new owner is offered all that wait in no order at
// all: so the list is a skip list, in which to find any place takes a number of steps
// that grows with the logarithm of the length.
type ticketList struct {
	ends
	len int
	// above are the ends of the levels over that of all entries. A quarter of each
	// level is on the next one.
	above []ends
}

// ends are the first and the last entry of a level.
type ends struct{ first, last *entry }

// link is an entry's place in a level.
type link struct{ prev, next *entry }

// maxAbove bounds the levels: enough for some hundred thousand tickets.
const maxAbove = 8

// linksAbove are a new entry's links to levels above the lowest. A quarter of the
// numbers come to each further level, in no pattern.
func linksAbove(seq uint64) []link {
	// The finalizer of SplitMix64 makes consecutive numbers look random.
	seq = (seq ^ seq>>30) * 0xbf58476d1ce4e5b9
	seq = (seq ^ seq>>27) * 0x94d049bb133111eb
	if n := min(maxAbove, bits.TrailingZeros64(seq^seq>>31)/2); n > 0 {
		return make([]link, n)
	}
	return nil
}

func (e *entry) before(other *entry) bool {
	if !e.ticket.Arrived.Equal(other.ticket.Arrived) {
		return e.ticket.Arrived.Before(other.ticket.Arrived)
	}
	return e.seq < other.seq
}

// linkAt is an entry's link to a level that it is on; 0 is the level of all entries.
func (e *entry) linkAt(level int) *link {
	if level == 0 {
		return &e.link
	}
	return &e.above[level-1]
}

// level are the ends of a level.
func (l *ticketList) level(level int) *ends {
	if level == 0 {
		return &l.ends
	}
	return &l.above[level-1]
}

// insert puts an entry in its place. Both ends are tried before the search.
func (l *ticketList) insert(e *entry) {
	for len(l.above) < len(e.above) {
		l.above = append(l.above, ends{})
	}
	l.len++
	switch {
	case l.last == nil || !e.before(l.last):
		for level := range len(e.above) + 1 {
			l.level(level).linkAfter(e, level, l.level(level).last)
		}
	case e.before(l.first):
		for level := range len(e.above) + 1 {
			l.level(level).linkAfter(e, level, nil)
		}
	default:
		l.search(e)
	}
}

// search puts an entry in its place, from the highest level down.
func (l *ticketList) search(e *entry) {
	var after *entry
	for level := len(l.above); level >= 0; level-- {
		next := l.level(level).following(after, level)
		for next != nil && next.before(e) {
			after, next = next, next.linkAt(level).next
		}
		if level <= len(e.above) {
			l.level(level).linkAfter(e, level, after)
		}
	}
}

// following is what comes after an entry of a level, or the first if that is nil.
func (s *ends) following(after *entry, level int) *entry {
	if after == nil {
		return s.first
	}
	return after.linkAt(level).next
}

// linkAfter puts an entry into a level after another one, or in front if that is nil.
func (s *ends) linkAfter(e *entry, level int, after *entry) {
	next := s.following(after, level)
	*e.linkAt(level) = link{prev: after, next: next}
	if after == nil {
		s.first = e
	} else {
		after.linkAt(level).next = e
	}
	if next == nil {
		s.last = e
	} else {
		next.linkAt(level).prev = e
	}
}

// absorb moves all of another list to their places in this one.
func (l *ticketList) absorb(other *ticketList) {
	for e := other.first; e != nil; e = other.first {
		other.unlink(e)
		l.insert(e)
	}
}

func (l *ticketList) unlink(e *entry) {
	l.len--
	for level := range len(e.above) + 1 {
		l.level(level).unlink(e, level)
	}
}

func (s *ends) unlink(e *entry, level int) {
	at := e.linkAt(level)
	if at.prev == nil {
		s.first = at.next
	} else {
		at.prev.linkAt(level).next = at.next
	}
	if at.next == nil {
		s.last = at.prev
	} else {
		at.next.linkAt(level).prev = at.prev
	}
	*at = link{}
}
