package placement

import "slices"

// Site is the nodes on which instances of some functions may run, as they were at one
// moment, with what was requested of them since. What it knows of an amount is found
// out once, however many functions ask. It is not safe for concurrent use.
type Site struct {
	ordinary, avoided *Index
	excluded          ReasonCounts
	capacities        map[Amount]int
	explanations      map[Amount]string
	// places are where nodes stand, by name; nil until somebody asks.
	places map[string]place
}

// place is a node of an index.
type place struct {
	in   *Index
	node int
}

// NewSite makes a Site of candidates, whose slices belong to it from then on.
func NewSite(c Candidates) *Site {
	return &Site{
		ordinary: NewIndex(c.Nodes), avoided: NewIndex(c.Avoided), excluded: c.Excluded,
		capacities: make(map[Amount]int), explanations: make(map[Amount]string),
	}
}

// Room is for how many instances there was room at the first look. Nodes that are
// avoided count only if there is none elsewhere.
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

// Refresh makes what is known of the nodes now the first look of those who ask from
// now on.
func (s *Site) Refresh() {
	clear(s.capacities)
	clear(s.explanations)
}

// Pick returns the name of a node that has room for want now, each with the same
// probability, unless there is none; see Index.Pick. It requests nothing.
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

// Fits says whether the node of that name has room for want now, if it takes the place
// of kept, which is requested already.
func (s *Site) Fits(node string, want, kept Amount) bool {
	at, there := s.place(node)
	if !there {
		return false
	}
	return at.in.nodes[at.node].fits(&want, &kept)
}

// Request adds an amount, which may be negative, to what is requested of a node. A
// node that does not belong to the site is passed over.
func (s *Site) Request(node string, amount Amount) {
	if at, there := s.place(node); there {
		at.in.Request(at.node, amount)
	}
}

// Nodes are copies of all nodes of the site as they are now.
func (s *Site) Nodes() []Node { return slices.Concat(s.ordinary.nodes, s.avoided.nodes) }

// Explain says why there was no room at the first look.
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
