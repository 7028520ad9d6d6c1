package node

import "time"

// Sharing lets all calls share the cores: the ideal of CFS and EEVDF.
type Sharing struct{}

type sharing struct {
	w    *world
	band *band
}

func (Sharing) start(w *world, cores int) (decisions, error) {
	g := newGroup(float64(cores), 1)
	w.groups = append(w.groups, g)
	return sharing{w, g.bands[0]}, nil
}

func (s sharing) add(j *job) { s.w.launch(j, s.band) }
func (sharing) stop(*job)    {}

// Queueing lets as many calls begin as there are cores, in an order, and each run to its end.
// A call that sleeps keeps its core.
type Queueing struct {
	// Key is the order, the smallest first; nil is the order of arrival. It is asked once, when
	// the call comes. Calls with the same key go in the order of arrival.
	Key func(Call) float64
}

type queueing struct {
	w       *world
	band    *band
	free    int
	key     func(Call) float64
	waiting heap[keyed]
}

// keyed is a call with its place in an order.
type keyed struct {
	key float64
	*job
}

func byKey(a, b keyed) bool { return a.key < b.key || a.key == b.key && a.number < b.number }

func (q Queueing) start(w *world, cores int) (decisions, error) {
	g := newGroup(float64(cores), 1)
	w.groups = append(w.groups, g)
	key := q.Key
	if key == nil {
		key = func(c Call) float64 { return c.Arrival.Seconds() }
	}
	return &queueing{w: w, band: g.bands[0], free: cores, key: key, waiting: heap[keyed]{before: byKey}}, nil
}

func (q *queueing) add(j *job) {
	q.waiting.insert(keyed{q.key(j.Call), j})
	q.fill()
}

func (q *queueing) stop(*job) {
	q.free++
	q.fill()
}

func (q *queueing) fill() {
	for q.free > 0 && len(q.waiting.items) > 0 {
		q.free--
		q.w.launch(q.waiting.cut(0).job, q.band)
	}
}

// Shortest runs the calls with the shortest rest. It knows the sizes of all calls, so it is
// an oracle. A call that sleeps keeps its core.
type Shortest struct{}

type shortest struct {
	w       *world
	band    *band
	free    int
	running []*job
	waiting heap[keyed]
}

func (Shortest) start(w *world, cores int) (decisions, error) {
	g := newGroup(float64(cores), 1)
	w.groups = append(w.groups, g)
	return &shortest{w: w, band: g.bands[0], free: cores, waiting: heap[keyed]{before: byKey}}, nil
}

func (s *shortest) add(j *job) {
	left := j.CPU().Seconds()
	if s.free > 0 {
		s.free--
		s.runNow(j)
		return
	}
	longest, most := 0, -1.0
	for i, other := range s.running {
		if rest := s.rest(other); rest > most {
			longest, most = i, rest
		}
	}
	if most <= left {
		s.waiting.insert(keyed{left, j})
		return
	}
	other := s.running[longest]
	s.running[longest] = s.running[len(s.running)-1]
	s.running = s.running[:len(s.running)-1]
	s.w.move(other, nil)
	s.waiting.insert(keyed{most, other})
	s.runNow(j)
}

func (s *shortest) runNow(j *job) {
	s.running = append(s.running, j)
	if j.launched < 0 {
		s.w.launch(j, s.band)
		return
	}
	s.w.move(j, s.band)
}

// rest is what a call has yet to compute.
func (s *shortest) rest(j *job) float64 { return j.CPU().Seconds() - j.computed() }

func (s *shortest) stop(j *job) {
	for i, other := range s.running {
		if other == j {
			s.running[i] = s.running[len(s.running)-1]
			s.running = s.running[:len(s.running)-1]
			break
		}
	}
	if len(s.waiting.items) == 0 {
		s.free++
		return
	}
	s.runNow(s.waiting.cut(0).job)
}

// Sizes is an order for Queueing that knows all sizes: the shortest first, but a call counts as
// longer by a part of the time that passes before it comes. With 0 it is SEPT, with 1 EECT.
func Sizes(aging float64, size func(Call) time.Duration) func(Call) float64 {
	return func(c Call) float64 { return size(c).Seconds() + aging*c.Arrival.Seconds() }
}
