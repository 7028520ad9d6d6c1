package main

import (
	"slices"
	"sync"
)

// sender is a call that can be sent to a place. It reports false if the place is gone.
type sender[P any] interface{ sendTo(place P) bool }

// places are those that instances have lent to a gateway, and the calls that wait for one, in
// order of arrival. It is all that the measured gateways have of a queue.
type places[P comparable] struct {
	mu      sync.Mutex // guards everything below
	free    []P
	waiting []sender[P]
}

// serve sends a call to the place that was used last, or lets it wait. It reports whether the
// call was sent.
func (p *places[P]) serve(call sender[P]) bool {
	for {
		p.mu.Lock()
		last := len(p.free) - 1
		if last < 0 {
			p.waiting = append(p.waiting, call)
			p.mu.Unlock()
			return false
		}
		place := p.free[last]
		p.free = p.free[:last]
		p.mu.Unlock()
		if call.sendTo(place) {
			return true
		}
	}
}

// give sends the call that has waited longest to a place, or keeps the place.
func (p *places[P]) give(place P) {
	p.mu.Lock()
	if len(p.waiting) == 0 {
		p.free = append(p.free, place)
		p.mu.Unlock()
		return
	}
	call := p.waiting[0]
	p.waiting = p.waiting[1:]
	p.mu.Unlock()
	if !call.sendTo(place) {
		p.serve(call)
	}
}

// leave lets a call wait no longer. It is false if it does not wait.
func (p *places[P]) leave(call sender[P]) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.Index(p.waiting, call)
	if at < 0 {
		return false
	}
	p.waiting = slices.Delete(p.waiting, at, at+1)
	return true
}

// forget lets no call be sent to a place that was given.
func (p *places[P]) forget(place P) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.free, place); at >= 0 {
		p.free = slices.Delete(p.free, at, at+1)
	}
}
