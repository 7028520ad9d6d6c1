package callorder

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A siege is a node of one core with a victim, whose calls of 8 ms come at random and want a third of it, and
// four pods of another tenant that compute as much as they can. Time goes in ticks; the pods of the normal
// band that compute share the core, and those of the low one have what they leave. There are no breaths.
type siege struct {
	t      *testing.T
	core   *Core // nil for a node without an order
	now    time.Duration
	pods   []*podOfSiege
	lastID InstanceID
	turn   int
}

// podOfSiege does one thing after the other: it computes, sleeps, or waits for a ticket, and then goes on.
type podOfSiege struct {
	s         *siege
	id        InstanceID
	joins     Joined
	usage     time.Duration
	left      time.Duration // what it computes yet
	until     time.Duration // when it wakes up
	waits     bool
	low, free bool // free says that it need not ask
	ask       uint64
	then      func()
}

const (
	siegeTick   = 200 * time.Microsecond
	siegeSettle = 1500 * ms
	siegeFor    = 8 * time.Second
)

func newSiege(t *testing.T, ordered bool) *siege {
	s := &siege{t: t}
	if ordered {
		p := DefaultParams(1)
		p.Unasked = UnaskedOfPods()
		s.core, _ = New(p)
		s.tell(ModeChanged{Busy: true})
	}
	return s
}

func (s *siege) tell(e Event) {
	if s.core == nil {
		return
	}
	for _, effect := range s.core.Step(s.now, e) {
		switch e := effect.(type) {
		case Grant:
			if p := s.pod(e.Instance); p != nil && p.ask == e.Ask {
				p.waits = false
			}
		case SetBand:
			if p := s.pod(e.Instance); p != nil {
				p.low = e.Low
			}
		case AskAgain:
			s.pod(e.Instance).free = false
		}
	}
}

func (s *siege) pod(id InstanceID) *podOfSiege {
	i := slices.IndexFunc(s.pods, func(p *podOfSiege) bool { return p.id == id })
	if i < 0 {
		return nil
	}
	return s.pods[i]
}

// join lets a pod join, or come again with another hello.
func (s *siege) join(p *podOfSiege, says Joined) *podOfSiege {
	if p == nil {
		p = &podOfSiege{s: s}
		s.pods = append(s.pods, p)
	} else {
		s.tell(Left{Instance: p.id})
	}
	s.lastID++
	says.Instance, says.Usage = s.lastID, p.usage
	p.id, p.joins, p.free = s.lastID, says, false
	s.tell(says)
	return p
}

func (p *podOfSiege) compute(d time.Duration, then func()) { p.left, p.then = d, then }

func (p *podOfSiege) sleep(d time.Duration, then func()) { p.until, p.then = p.s.now+d, then }

// askFor asks for a ticket and goes on with it.
func (p *podOfSiege) askFor(then func()) {
	p.then = then
	if p.s.core != nil {
		p.ask++
		p.waits = true
		p.s.tell(Asked{Instance: p.id, Ask: p.ask, Usage: p.usage})
	}
}

// endCall says that its call has ended, and lets it stop asking as a node agent does.
func (p *podOfSiege) endCall() {
	p.s.tell(Ended{Instance: p.id, Usage: p.usage})
	if p.s.core == nil {
		return
	}
	mean, known := p.s.core.Mean(p.joins.Namespace, p.joins.Function)
	if known && mean < 2*ms && p.s.core.MayBeExempt(p.s.now, p.id) {
		p.free = true
		p.s.tell(Exempted{Instance: p.id})
	}
}

func (p *podOfSiege) computes() bool { return p.left > 0 && !p.waits && p.until <= p.s.now }

// tick lets a tick pass, and the node agent look when it does.
func (s *siege) tick() {
	for _, band := range []bool{false, true} {
		var those []*podOfSiege
		for _, p := range s.pods {
			if p.low == band && p.computes() {
				those = append(those, p)
			}
		}
		if len(those) > 0 {
			s.turn++
			p := those[s.turn%len(those)]
			p.usage += siegeTick
			p.left -= siegeTick
			break
		}
	}
	s.now += siegeTick
	if s.core != nil && s.now%(5*ms) == 0 {
		s.sample(s.core.AppendDue(nil))
	}
	if s.core != nil && s.now%(100*ms) == 0 {
		s.sample(s.core.AppendUnasked(nil, 32))
		s.sample(s.core.AppendLow(nil))
	}
	for _, p := range s.pods {
		for p.left <= 0 && !p.waits && p.until <= s.now && p.then != nil {
			then := p.then
			p.then = nil
			then()
		}
	}
}

func (s *siege) sample(ids []InstanceID) {
	for _, id := range ids {
		s.tell(Sampled{Instance: id, Usage: s.pod(id).usage})
	}
}

// suffered measures the victim's calls beside pods that live as the function live lets them.
func suffered(t *testing.T, ordered bool, says Joined, live func(*podOfSiege)) (p50, p99 time.Duration) {
	t.Helper()
	s := newSiege(t, ordered)
	var due []time.Duration
	rng := rand.New(rand.NewPCG(17, 19))
	for at := 0.0; at < (siegeSettle + siegeFor).Seconds(); at += rng.ExpFloat64() / 40 {
		due = append(due, time.Duration(at*float64(time.Second)))
	}
	var took []time.Duration
	var serve func(p *podOfSiege)
	serve = func(p *podOfSiege) {
		if len(due) == 0 || due[0] > s.now {
			p.sleep(siegeTick, func() { serve(p) })
			return
		}
		came := due[0]
		due = due[1:]
		p.askFor(func() {
			p.compute(8*ms, func() {
				p.endCall()
				if came > siegeSettle {
					took = append(took, s.now-came)
				}
				serve(p)
			})
		})
	}
	for i := range 4 {
		serve(s.join(nil, Joined{Namespace: "shop", Function: "cart", MustAsk: true, Name: fmt.Sprint("cart-", i)}))
	}
	for i := range 4 {
		joins := says
		joins.Namespace, joins.Function, joins.Name = "evil", "hog", fmt.Sprint("hog-", i)
		live(s.join(nil, joins))
	}
	for s.now < siegeSettle+siegeFor {
		s.tick()
	}
	slices.Sort(took)
	if len(took) < 100 {
		t.Errorf("only %d calls have ended", len(took))
		return time.Hour, time.Hour
	}
	return took[len(took)/2], took[len(took)*99/100]
}

// again lives the same round for ever.
func again(round func(p *podOfSiege, n int, then func())) func(*podOfSiege) {
	return func(p *podOfSiege) {
		n := 0
		var next func()
		next = func() {
			n++
			round(p, n, next)
		}
		next()
	}
}

func honestRound(p *podOfSiege, _ int, then func()) {
	p.askFor(func() { p.compute(200*ms, func() { p.endCall(); then() }) })
}

func spinRound(p *podOfSiege, _ int, then func()) { p.compute(50*ms, then) }

// A tenant whose calls take less of the core than the victim's is not before it for that.
func TestWhoHasMoreCallsIsNotBehindWhoHasFew(t *testing.T) {
	asks := Joined{MustAsk: true}
	for _, tenant := range []struct{ computes, pauses time.Duration }{{50 * ms, 800 * ms}, {200 * ms, 4 * time.Second}} {
		live := again(func(p *podOfSiege, _ int, then func()) {
			p.askFor(func() { p.compute(tenant.computes, func() { p.endCall(); p.sleep(tenant.pauses, then) }) })
		})
		_, p99 := suffered(t, true, asks, live)
		_, off99 := suffered(t, false, asks, live)
		t.Logf("calls of %s with pauses of %s: p99 %s; without an order %s", tenant.computes, tenant.pauses, p99, off99)
		if 2*p99 > off99 {
			t.Errorf("calls beside those of %s take %s, and without an order %s", tenant.computes, p99, off99)
		}
	}
}

// Whatever a tenant's agents say, the calls of another one take hardly longer than beside honest agents, and
// not longer than without an order.
func TestLiesDoNotHarmOthers(t *testing.T) {
	asks := Joined{MustAsk: true}
	_, honest := suffered(t, true, asks, again(honestRound))
	rejoin := func(p *podOfSiege, function string) {
		says := p.joins
		says.Function = function
		p.s.join(p, says)
	}
	rejoinAs := func(p *podOfSiege, class Class) {
		says := p.joins
		says.Class = class
		p.s.join(p, says)
	}
	for _, lie := range []struct {
		name string
		says Joined
		live func(p *podOfSiege, n int, then func())
	}{
		{"honest", asks, honestRound},
		{"asks for nothing", Joined{MustAsk: true, Usage: time.Hour}, spinRound},
		{"never had a call", asks, spinRound},
		{"says that it runs two calls at a time", Joined{}, spinRound},
		{"the same, and comes again each time", Joined{}, func(p *podOfSiege, _ int, then func()) {
			rejoin(p, "hog")
			p.compute(50*ms, then)
		}},
		{"comes as batch and then again", asks, func(p *podOfSiege, _ int, then func()) {
			rejoinAs(p, Batch)
			rejoinAs(p, Standard)
			p.compute(50*ms, then)
		}},
		{"says at once that its call has ended", asks, func(p *podOfSiege, _ int, then func()) {
			p.askFor(func() { p.endCall(); p.compute(200*ms, then) })
		}},
		{"the same, in short pieces", asks, func(p *podOfSiege, _ int, then func()) {
			p.askFor(func() { p.endCall(); p.compute(90*ms, then) })
		}},
		{"keeps its ticket and hardly computes", asks, func(p *podOfSiege, _ int, then func()) {
			p.askFor(func() {
				n := 0
				var bit func()
				bit = func() {
					if n++; n > 20 {
						p.endCall()
						then()
						return
					}
					p.compute(200*time.Microsecond, func() { p.sleep(3*ms, bit) })
				}
				bit()
			})
		}},
		{"has a new function for each call", asks, func(p *podOfSiege, n int, then func()) {
			rejoin(p, fmt.Sprint("f", n, "-", p.joins.Name))
			honestRound(p, n, then)
		}},
		{"the same, and never says that one has ended", asks, func(p *podOfSiege, n int, then func()) {
			rejoin(p, fmt.Sprint("f", n, "-", p.joins.Name))
			p.askFor(func() { p.compute(200*ms, then) })
		}},
	} {
		p50, p99 := suffered(t, true, lie.says, again(lie.live))
		off50, off99 := suffered(t, false, lie.says, again(lie.live))
		t.Logf("%s: p50 %s, p99 %s; without an order %s, %s", lie.name, p50, p99, off50, off99)
		if limit := honest * 6 / 5; p99 > limit || p99 > max(off99, honest) {
			t.Errorf("a tenant that %s: calls beside it take %s, beside an honest one %s, and without an order %s", lie.name, p99, honest, off99)
		}
	}
}
