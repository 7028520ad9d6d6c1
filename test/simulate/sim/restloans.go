package sim

// unsettledLoans compares what instances have lent with what gateways and schedulers have of it.
func (w settling) unsettledLoans() Rule {
	for _, n := range w.gateways {
		g := n.program.(*gateway)
		for _, c := range g.agents {
			if c.lender != nil && c.lender.Credits() > 0 && w.lenderOf(c) == nil {
				return RuleLoansEnd
			}
		}
		for _, p := range g.pools {
			if r := p.core.Report(); r.Waiting+r.Running > 0 || r.Lent != g.creditsIn(p) {
				return RulePoolCounts
			}
		}
	}
	for _, in := range w.platform.running() {
		a := in.node.program.(*agent)
		if a.spare || a.gaveUp || !in.ready {
			continue
		}
		for _, c := range a.gateways {
			if c.open && w.creditsOf(c) != c.credits {
				return RuleCreditsAgree
			}
		}
		if open := w.unsettledPlaces(in, a); open != "" {
			return open
		}
	}
	return ""
}

// unsettledPlaces looks for places of an instance that are lost.
func (w settling) unsettledPlaces(in *instance, a *agent) Rule {
	for _, n := range w.schedulers {
		f := n.program.(*scheduler).lookup(in.fn)
		if f == nil || !f.serving() || f.stream(in.cid) == nil {
			continue
		}
		pulls, lent := f.tickets.asks(in.cid).credits, f.tickets.lent(in.cid)
		if lent != a.lent()+a.byLoan() || pulls+lent+f.tickets.holds(in.cid) != in.fn.concurrency {
			return RulePlacesKept
		}
	}
	return ""
}

// creditsIn is how many calls a gateway could hand over at once.
func (g *gateway) creditsIn(p *pool) (n int) {
	for _, c := range g.agents {
		if c.in == p {
			n += c.lender.Credits()
		}
	}
	return n
}

// lenderOf is the running instance's end of a gateway's connection; nil if there is none.
func (w settling) lenderOf(c *agentConn) *gatewayConn {
	for _, in := range w.platform.running() {
		for _, mine := range in.node.program.(*agent).gateways {
			if mine.stream == c.stream {
				return mine
			}
		}
	}
	return nil
}

// creditsOf is how many credits a gateway has with an instance.
func (w settling) creditsOf(mine *gatewayConn) int {
	for _, n := range w.gateways {
		for _, c := range n.program.(*gateway).agents {
			if c.stream == mine.stream && c.lender != nil {
				return c.lender.Credits()
			}
		}
	}
	return 0
}

// byLoan is how many calls the instance runs by loans.
func (a *agent) byLoan() (n int) {
	for _, c := range a.gateways {
		n += c.byLoan()
	}
	return n
}
