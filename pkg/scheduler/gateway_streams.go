package scheduler

import (
	"slices"
	"sync"
)

// gatewayStreams has the streams that bring tickets, by the gateway's claim address, the
// newest last. A gateway has one of its own, two while it reconnects, and one for each
// scheduler that forwards its tickets.
type gatewayStreams struct {
	mu        sync.Mutex
	byGateway map[string][]*offerStream
	// last is the number of the last stream.
	last uint64
}

func (r *gatewayStreams) register(o *offerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byGateway == nil {
		r.byGateway = make(map[string][]*offerStream)
	}
	r.last++
	o.number = r.last
	r.byGateway[o.gateway] = append(r.byGateway[o.gateway], o)
}

// unregister removes a stream that has ended. The gateway's other streams stay.
func (r *gatewayStreams) unregister(o *offerStream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := slices.DeleteFunc(r.byGateway[o.gateway], func(other *offerStream) bool { return other == o })
	if len(left) == 0 {
		delete(r.byGateway, o.gateway)
	} else {
		r.byGateway[o.gateway] = left
	}
}

// streamTo picks the stream for refusals to a gateway: its newest own one, or else the newest
// one that forwards its tickets; nil if it has none.
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
