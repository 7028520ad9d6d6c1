package core

import (
	"slices"
	"time"
)

// passAfter is how long a gateway has a place that it does not use while no scheduler answers: the term of
// a loan. A scheduler that is replaced has that long to answer before anything changes.
const passAfter = 100 * time.Millisecond

// passDue hands places out while no scheduler can, so that no call waits for one beside an idle place: those that nobody
// has go to the gateways in turn, and those that one gateway does not use to one that has none.
func passDue(c *Core, now time.Time) {
	gs := &c.gateways
	between := gatewaysInTurn(c)
	if !mayPass(c, between) {
		gs.passAt = time.Time{}
		return
	}
	switch {
	case gs.passAt.IsZero():
		gs.passAt = now.Add(passAfter)
		return
	case now.Before(gs.passAt):
		return
	}
	gs.passAt = now.Add(passAfter)
	moved := lendFree(c, now, between)
	for _, n := range between {
		moved = passOn(c, now, n, between) || moved
	}
	if moved {
		c.sendPull(now, 0) // says what is lent, should a scheduler come to answer
	}
}

// gatewaysInTurn are the gateways that may have places, from the one on whose turn it is. One that has granted no claim knows
// nothing of the instance, and takes none.
func gatewaysInTurn(c *Core) []Gateway {
	gs := &c.gateways
	if c.link.established() || !c.life.ready || c.life.draining || !gs.lends {
		return nil
	}
	all := slices.DeleteFunc(gs.numbers(), func(n Gateway) bool { return gs.open(n) == nil || !gs.conns[n].granted })
	at, found := slices.BinarySearch(all, gs.turn)
	if found {
		at++
	}
	return slices.Concat(all[at:], all[:at])
}

// mayPass says whether there are places for these gateways. What was pulled with may come by a ticket.
func mayPass(c *Core, between []Gateway) bool {
	return len(between) > 0 && freeOfTickets(c) > 0 || len(between) > 1 && c.gateways.idle > 0
}

// freeOfTickets is how many places neither a gateway has nor a scheduler, as far as it was told of them.
func freeOfTickets(c *Core) int {
	if c.link.phase == linkOpen {
		return 0
	}
	return c.free()
}

// lendFree divides the places that nobody has, and reports whether there were some.
func lendFree(c *Core, now time.Time, between []Gateway) bool {
	gs, free := &c.gateways, freeOfTickets(c)
	for i, n := range between {
		k := (free + len(between) - 1 - i) / len(between)
		if k == 0 {
			break
		}
		gs.lend(now, gs.conns[n], k)
		gs.turn = n
		c.emit(Lend{n, k})
	}
	return free > 0
}

// passOn lets the next gateway that has no place have half of those that this one does not use, or the only one. It reports
// whether it did.
func passOn(c *Core, now time.Time, from Gateway, between []Gateway) bool {
	gs := &c.gateways
	g := gs.conns[from]
	if g.idle == 0 || now.Sub(g.idleSince) < passAfter {
		return false
	}
	at := slices.Index(between, from)
	for _, n := range slices.Concat(between[at+1:], between[:at]) {
		if to := gs.conns[n]; to.idle == 0 && to.loans == 0 {
			k := max(1, g.idle/2)
			c.takeBack(now, from, g, k)
			gs.lend(now, to, k)
			gs.turn = n
			c.emit(Lend{n, k})
			return true
		}
	}
	return false
}
