package scheduler

import (
	"slices"
	"sync"
)

// gatewayStreams are the streams by which the tickets of gateways come, by the
// gateway's claim address, the latest last. A gateway has one of its own, two while it
// opens another one, and one for each scheduler that passes its tickets on.
type gatewayStreams struct {
	mu        sync.Mutex
	byGateway map[string][]*offerStream
}

func (r *gatewayStreams) register(o *offerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byGateway == nil {
		r.byGateway = make(map[string][]*offerStream)
	}
	r.byGateway[o.gateway] = append(r.byGateway[o.gateway], o)
}

// unregister takes a stream away that has ended. The gateway's others stay.
func (r *gatewayStreams) unregister(o *offerStream) {
	close(o.ended)
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.byGateway[o.gateway], func(other *offerStream) bool { return other == o })
	if len(left) == 0 {
		delete(r.byGateway, o.gateway)
	} else {
		r.byGateway[o.gateway] = left
	}
}

// streamTo is by which stream a gateway is told of its tickets: the latest of its own, or
// else the latest by which others pass them on; nil if there is none.
func (r *gatewayStreams) streamTo(gateway string) *offerStream {
	r.mu.Lock()
	defer r.mu.Unlock()
	streams := r.byGateway[gateway]
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
