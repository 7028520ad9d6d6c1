package sim

import (
	"fmt"
	"slices"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// offerEnd is a scheduler's end of a gateway's tickets.
type offerEnd struct {
	scheduler *scheduler
	gateway   string
	// forwarded says that another scheduler passes them on.
	forwarded bool
	stream    *stream
	forwards  []*forward
	// number names the stream, and over says that it has ended.
	number uint64
	over   bool
	// reported are the units on which it has had a report.
	reported map[*unit]bool
}

func (o *offerEnd) opened() {}

func (o *offerEnd) closed(closing) {
	s := o.scheduler
	o.over = true
	s.offerer = slices.DeleteFunc(s.offerer, func(other *offerEnd) bool { return other == o })
	for _, f := range o.forwards {
		f.stream.close(s.node)
	}
	for _, f := range s.served {
		f.step(core.GatewayGone{Gateway: o.gateway, Stream: o.number})
	}
}

func (o *offerEnd) take(m any) {
	switch m := m.(type) {
	case offer:
		if o.passOn(m.fn.function, m) {
			return
		}
		reason := invocation.RefusedUnknownFunction
		if f := o.scheduler.lookup(m.fn); f != nil {
			reason = f.offer(m, o)
		}
		if reason != "" {
			o.refuse(refusal{id: m.id, reason: reason})
		}
	case loanReport:
		resumed := o.forwarded || o.reported[m.fn]
		o.reported[m.fn] = true
		if o.passOn(m.fn.function, m) {
			return
		}
		if f := o.scheduler.lookup(m.fn); f != nil {
			o.scheduler.world.explain(o.scheduler.name, fmt.Sprintf("hears of function %d from %s by stream %d, resumed %v: %+v",
				f.fn.index, o.gateway, o.number, resumed, m.report))
			f.reconsider()
			f.passedOn = o.forwarded
			f.step(&core.Reported{
				Gateway: o.gateway, Stream: o.number, Resumed: resumed, Report: core.LoanReport(m.report),
			})
		}
	case cancellation:
		if o.passOn(m.fn.function, m) {
			return
		}
		if f := o.scheduler.lookup(m.fn); f != nil {
			f.step(&core.CallCancelled{ID: m.id})
		}
	}
}

// passOn passes on what concerns a function that another scheduler serves, unless
// it was passed on already.
func (o *offerEnd) passOn(fn *function, m any) bool {
	if o.forwarded || o.scheduler.term(fn) != core.Unserved {
		return false
	}
	to := o.scheduler.elsewhere(fn)
	if to.Addr == "" {
		return false
	}
	for _, known := range o.forwards {
		if known.addr == to.Addr {
			known.pass(m)
			return true
		}
	}
	next := &forward{from: o, addr: to.Addr}
	o.forwards = append(o.forwards, next)
	next.stream = o.scheduler.dial(o.scheduler.world.nodeOf(to.Addr), openOffers{gateway: o.gateway, forwarded: true}, next)
	next.pass(m)
	return true
}

func (o *offerEnd) refuse(r refusal) { o.stream.sendTicket(o.scheduler.node, r) }

// refuse refuses a ticket at the gateway that it came from.
func (s *scheduler) refuse(t invocation.Ticket, why invocation.Refusal) {
	if o := s.reach(t.Gateway); o != nil {
		o.refuse(refusal{id: t.ID, reason: why.Reason, admitted: why.Admitted})
	}
}

// reach is the newest stream of a gateway, or nil.
func (s *scheduler) reach(gateway string) *offerEnd {
	for _, o := range slices.Backward(s.offerer) {
		if o.gateway == gateway {
			return o
		}
	}
	return nil
}

// forward is the stream by which a scheduler passes on a gateway's tickets.
type forward struct {
	from    *offerEnd
	addr    string
	stream  *stream
	open    bool
	pending []any
}

func (f *forward) pass(m any) {
	if f.open {
		f.stream.sendTicket(f.from.scheduler.node, m)
		return
	}
	f.pending = append(f.pending, m)
}

func (f *forward) opened() {
	f.open = true
	for _, m := range f.pending {
		f.pass(m)
	}
	f.pending = nil
}

// take passes a refusal back.
func (f *forward) take(m any) {
	if r, ok := m.(refusal); ok {
		f.from.refuse(r)
	}
}

// closed refuses what could not be passed on, so that the gateway offers it again.
func (f *forward) closed(closing) {
	f.open = false
	f.from.forwards = slices.DeleteFunc(f.from.forwards, func(other *forward) bool { return other == f })
	for _, m := range f.pending {
		if o, ok := m.(offer); ok {
			f.from.refuse(refusal{id: o.id, reason: invocation.RefusedNotOwner})
		}
	}
}
