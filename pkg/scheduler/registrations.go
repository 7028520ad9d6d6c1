package scheduler

import (
	"slices"
	"sync"
)

// registrations are the streams by which the tickets of gateways come, by the
// gateway's claim address, the latest last. A gateway has one of its own, two while it
// opens another one, and one for each scheduler that passes its tickets on.
type registrations struct {
	mu sync.Mutex
	of map[string][]*offerStream
}

func (r *registrations) enter(o *offerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = make(map[string][]*offerStream)
	}
	r.of[o.gateway] = append(r.of[o.gateway], o)
}

// leave takes a stream away that has ended. The gateway's others stay.
func (r *registrations) leave(o *offerStream) {
	close(o.ended)
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.of[o.gateway], func(other *offerStream) bool { return other == o })
	if len(left) == 0 {
		delete(r.of, o.gateway)
	} else {
		r.of[o.gateway] = left
	}
}

// reach is by which stream a gateway is told of its tickets: the latest of its own, or
// else the latest by which others pass them on; nil if there is none.
func (r *registrations) reach(gateway string) *offerStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	streams := r.of[gateway]
	for _, o := range slices.Backward(streams) {
		if !o.forwarded {
			return o
		}
	}
	if len(streams) > 0 {
		return streams[len(streams)-1]
	}
	return nil
}
