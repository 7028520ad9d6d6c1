package node

// Nodes are some alike nodes, each with the cores that Run is given and a policy of its own. Calls
// are dealt to them in turn, by function.
type Nodes struct {
	Count  int
	Policy Policy
	// Apart gives each node a shared resource of its own. Otherwise all have one in common.
	Apart bool
}

type nodes struct {
	each []decisions
	own  []*band // their resources, if they are apart
	next map[string]int
	of   map[*job]decisions
}

func (n Nodes) start(w *world, cores int) (decisions, error) {
	s := &nodes{next: map[string]int{}, of: map[*job]decisions{}}
	for range n.Count {
		each, err := n.Policy.start(w, cores)
		if err != nil {
			return nil, err
		}
		s.each = append(s.each, each)
		if n.Apart {
			g := newGroup(1, 1)
			w.groups = append(w.groups, g)
			s.own = append(s.own, g.bands[0])
		}
	}
	return s, nil
}

func (s *nodes) add(j *job) {
	at := s.next[j.Function]
	s.next[j.Function] = (at + 1) % len(s.each)
	s.of[j] = s.each[at]
	if s.own != nil {
		j.resource = s.own[at]
	}
	s.each[at].add(j)
}

func (s *nodes) stop(j *job) { s.of[j].stop(j) }

func (s *nodes) block(j *job) {
	if each, ok := s.of[j].(sleeper); ok {
		each.block(j)
	}
}

func (s *nodes) wake(j *job) {
	if each, ok := s.of[j].(sleeper); ok {
		each.wake(j)
	}
}
