package reconcile

// Set is what one side holds.
type Set[K comparable] map[K]struct{}

// SetOf is the set of some elements.
func SetOf[K comparable](elements ...K) Set[K] {
	s := make(Set[K], len(elements))
	for _, k := range elements {
		s.Add(k)
	}
	return s
}

// Add adds an element.
func (s Set[K]) Add(k K) { s[k] = struct{}{} }

// Has reports whether the element is in the set.
func (s Set[K]) Has(k K) bool {
	_, there := s[k]
	return there
}

// Difference is how a copy differs from its original.
type Difference[K comparable] struct {
	// Gone are the elements that the copy has and the original has not.
	Gone Set[K]
	// Unknown are the elements that the original has and the copy has not.
	Unknown Set[K]
}

// Compare says how a copy differs from its original.
func Compare[K comparable](believed, observed Set[K]) Difference[K] {
	return Difference[K]{Gone: without(believed, observed), Unknown: without(observed, believed)}
}

// without is what a has and b has not; nil if that is nothing.
func without[K comparable](a, b Set[K]) Set[K] {
	var rest Set[K]
	for k := range a {
		if b.Has(k) {
			continue
		}
		if rest == nil {
			rest = make(Set[K])
		}
		rest.Add(k)
	}
	return rest
}

// Level remembers what the last look found. Its zero value has not looked yet. It is
// not safe for concurrent use.
type Level[K comparable] struct{ last Difference[K] }

// Look records a difference and returns the part that the previous call also found, which no
// event on its way explains. A difference that is not repaired is returned again by the next
// call.
func (l *Level[K]) Look(now Difference[K]) (standing Difference[K]) {
	standing = Difference[K]{Gone: both(now.Gone, l.last.Gone), Unknown: both(now.Unknown, l.last.Unknown)}
	l.last = now
	return standing
}

// both is what a and b have; nil if that is nothing.
func both[K comparable](a, b Set[K]) Set[K] {
	var common Set[K]
	for k := range a {
		if !b.Has(k) {
			continue
		}
		if common == nil {
			common = make(Set[K])
		}
		common.Add(k)
	}
	return common
}
