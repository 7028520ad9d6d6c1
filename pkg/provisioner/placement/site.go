package placement

import "slices"

// Site is the set of nodes on which instances of some functions may run, at one moment, plus
// later requests. It computes the room for each amount once, however many functions ask. It is
// not safe for concurrent use.
type Site struct {
	ordinary, avoided *Index
	excluded          ReasonCounts
	capacities        map[Amount]int
	explanations      map[Amount]string
	// busy is what Busy found since the last request.
	busy map[Amount]bool
	// places has the positions of nodes by name; nil until first used.
	places map[string]place
}

// place is the position of a node in an index.
type place struct {
	in   *Index
	node int
}

// NewSite makes a Site of candidates, whose slices belong to it from then on.
func NewSite(c Candidates) *Site {
	return &Site{
		ordinary: NewIndex(c.Nodes), avoided: NewIndex(c.Avoided), excluded: c.Excluded,
		capacities: make(map[Amount]int), explanations: make(map[Amount]string),
		busy: make(map[Amount]bool),
	}
}

// Room is how many instances had room at the first look. Avoided nodes count only if no other
// has room.
func (s *Site) Room(want Amount) int {
	room, counted := s.capacities[want]
	if !counted {
		if room = s.ordinary.countRoom(want); room == 0 {
			room = s.avoided.countRoom(want)
		}
		s.capacities[want] = room
	}
	return room
}

// Busy reports whether some node has room for want now, and all that have are busy.
func (s *Site) Busy(want Amount) bool {
	busy, known := s.busy[want]
	if !known {
		busy = s.allBusy(want)
		s.busy[want] = busy
	}
	return busy
}

func (s *Site) allBusy(want Amount) bool {
	busy := false
	for _, in := range [...]*Index{s.ordinary, s.avoided} {
		for i := range in.nodes {
			switch n := &in.nodes[i]; {
			case !n.Fits(want):
			case !n.Busy:
				return false
			default:
				busy = true
			}
		}
	}
	return busy
}

// CouldFit reports whether some node would have room for want if it had only its Fixed requests.
func (s *Site) CouldFit(want Amount) bool {
	for _, in := range [...]*Index{s.ordinary, s.avoided} {
		for i := range in.nodes {
			if in.nodes[i].CouldFit(want) {
				return true
			}
		}
	}
	return false
}

// Refresh makes the present state the first look of later calls.
func (s *Site) Refresh() {
	clear(s.capacities)
	clear(s.explanations)
}

// Pick returns the name of a node that has room for want now, each with the same probability;
// ok is false if none has. See Index.Pick. It requests nothing.
func (s *Site) Pick(want Amount, intn func(n int) int) (node string, ok bool) {
	if s.Room(want) == 0 {
		return "", false
	}
	for _, in := range [...]*Index{s.ordinary, s.avoided} {
		if i := in.Pick(want, intn); i >= 0 {
			return in.nodes[i].Name, true
		}
	}
	return "", false
}

// Fits reports whether the node of that name has room for want now, in place of kept, which is
// already requested.
func (s *Site) Fits(node string, want, kept Amount) bool {
	at, there := s.place(node)
	if !there {
		return false
	}
	return at.in.nodes[at.node].fits(&want, &kept)
}

// Request adds an amount, which may be negative, to a node's requests. It ignores nodes
// outside the site.
func (s *Site) Request(node string, amount Amount) {
	if at, there := s.place(node); there {
		at.in.Request(at.node, amount)
		clear(s.busy)
	}
}

// Nodes are copies of the present states of all nodes of the site.
func (s *Site) Nodes() []Node { return slices.Concat(s.ordinary.nodes, s.avoided.nodes) }

// Explain says why no node had room at the first look.
func (s *Site) Explain(want Amount) string {
	why, said := s.explanations[want]
	if !said {
		why = Shortages(s.ordinary.nodes, want).Plus(Shortages(s.avoided.nodes, want)).Plus(s.excluded).String()
		s.explanations[want] = why
	}
	return why
}

func (s *Site) place(node string) (place, bool) {
	if s.places == nil {
		s.places = make(map[string]place, s.ordinary.Len()+s.avoided.Len())
		for _, in := range [...]*Index{s.ordinary, s.avoided} {
			for i := range in.nodes {
				s.places[in.nodes[i].Name] = place{in, i}
			}
		}
	}
	at, there := s.places[node]
	return at, there
}
