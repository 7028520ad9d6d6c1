package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// maxQueued is less than by default, so that queues are full now and then.
const maxQueued = 64

// scheduler is one: the core of the product for each function and for its slots, and
// around them what its shell does.
type scheduler struct {
	*node
	config core.Config
	view   *directory
	keeper *keeper
	// reader follows etcd for the view; nil if the keeper's does. They are two as in the product where one may
	// be fooled without the other, and else one, which costs less.
	reader *reader
	served []*served
	// closed are functions that were deleted and have left instances.
	closed  []*served
	offerer []*offerEnd
	// streams counts the streams of gateways.
	streams uint64
	stood   core.PauseDetector
	placer  *placer
	spares  *spares
	// unheard are instances that have gone, of which this scheduler has not heard.
	unheard []*instance
}

func newScheduler(n *node) *scheduler {
	s := &scheduler{node: n, config: core.Config{
		Tick: core.DefaultTick, MaxQueued: maxQueued, ClaimGrace: core.DefaultClaimGrace, Executions: core.DefaultExecutions,
	}}
	s.view = newDirectory(n, s.reconsider)
	for _, fn := range n.world.functions {
		if fn.entry == nil {
			continue
		}
		for _, u := range fn.entry.Units {
			s.served = append(s.served, newServed(s, fn.unit(u), fn.spec(u)))
		}
	}
	s.keeper = newKeeper(s)
	if n.world.etcd.silent {
		s.reader = s.view.newReader()
	}
	s.placer, s.spares = newPlacer(s), newSpares(s)
	s.view.talk = s.placer
	return s
}

func (s *scheduler) boot() {
	s.view.boot()
	s.keeper.boot()
	if s.reader != nil {
		s.reader.boot()
	}
	s.every(core.AuditEvery, func() {
		s.stood.Ran(s.now())
		s.reconsider()
	})
	s.every(s.config.Tick, s.tick)
	s.every(core.ReconcileEvery, s.reconcile)
	s.every(time.Second, s.stopOverdue)
}

// reconsider compares what is served with what should be.
func (s *scheduler) reconsider() {
	for _, f := range s.served {
		f.reconsider()
	}
}

// tick looks at every function that is not idle. The numbers are those of
// docs/architecture.md, "A tick"; alarms, which are in the first, are timers here.
func (s *scheduler) tick() {
	now := s.now()
	// 1. Learn what has gone from the workers.
	s.placer.begin(now)
	// 2. Order nothing after a standstill: what is seen then is old.
	if s.stood.Ran(now); s.stood.Holding(now) {
		for _, f := range s.active() {
			f.step(core.Paused{})
		}
		return
	}
	// 3. Observe and decide, function by function.
	var all []*considered
	for _, f := range s.active() {
		if c := f.consider(); c != nil {
			all = append(all, c)
		}
	}
	// 4. Launch instances, in turns of the namespaces.
	s.divide(all)
	// 5. Cancel what is not wanted, make room where some is lacking, and let each
	// function draw its conclusions.
	for _, c := range inTurns(all) {
		c.conclude(true)
		c.served.scaling.ticked()
	}
	// 6. Ask other schedulers for room that could not be made, and make what they ask for.
	s.placer.lack()
	s.placer.lend(now)
	// 7. Bring warm pools to their size, with what is left.
	s.spares.keep(now)
}

// active are the functions that are not idle.
func (s *scheduler) active() []*served {
	var active []*served
	for _, f := range s.served {
		if f.awake {
			active = append(active, f)
		}
	}
	return active
}

// reconcile compares what is believed with what is so, unless the process stood still.
func (s *scheduler) reconcile() {
	now := s.now()
	if s.stood.Ran(now); s.stood.Holding(now) {
		return
	}
	s.placer.mistrust()
	for _, f := range s.served {
		f.survey()
		f.step(core.ActivityAudited{Awake: f.awake})
		f.step(core.GatewaysAudited{Connected: s.hears})
	}
}

// of is the function of that UID; nil if it is not known.
func (s *scheduler) of(uid string) *served {
	for _, f := range s.served {
		if f.fn.uid == uid {
			return f
		}
	}
	return nil
}

// hears tells whether a gateway has a stream here.
func (s *scheduler) hears(gateway string) bool { return s.reach(gateway) != nil }

// accept answers the agent that opens a stream.
func (s *scheduler) accept(c *stream, what any) sink {
	switch what := what.(type) {
	case openOffers:
		s.streams++
		o := &offerEnd{scheduler: s, gateway: what.gateway, forwarded: what.forwarded, stream: c, number: s.streams, reported: make(map[*unit]bool)}
		s.offerer = append(s.offerer, o)
		return o
	case openSpare:
		return &spareEnd{scheduler: s, agent: what.agent, stream: c}
	case openPull:
		return &pullEnd{scheduler: s, fn: what.fn, cid: what.cid, stream: c}
	case openSlots:
		return &slotsEnd{scheduler: s, stream: c}
	case openHeartbeats:
		return &heartbeatEnd{scheduler: s, stream: c}
	}
	return nil
}

// heartbeatEnd answers heartbeats.
type heartbeatEnd struct {
	scheduler *scheduler
	stream    *stream
}

func (b *heartbeatEnd) opened() {}

func (b *heartbeatEnd) take(m any) {
	s := b.scheduler
	switch m := m.(type) {
	case askSlots:
		b.stream.send(s.node, slots{known: s.view.owners.Clone()})
	case heartbeat:
		reply := heartbeatReply{serving: s.keeper.ready() && !s.draining, epoch: s.view.lastEpoch()}
		if m.from != "" {
			reply.made = s.placer.lender.Receive(m.from, m.lacks, s.now())
		}
		b.stream.send(s.node, reply)
	}
}

func (b *heartbeatEnd) closed(closing) {}

// audit looks at all functions.
func (s *scheduler) audit() Rule {
	now, kept := s.now(), s.keeper.audit()
	for _, f := range s.served {
		f.tickets.audit(now)
		v := f.core.View(now)
		switch {
		case v.Arrived-v.Departed != uint64(v.Waiting):
			return RuleQueueCounts
		case f.core.Means().Execution > f.fn.timeout:
			return RuleMeanIsPossible
		case v.Waiting > 0 && !f.serving():
			return RuleServerHasTickets
		case v.Waiting > 0 && !f.awake:
			return RuleAwakeWithTickets
		case len(f.pulls) > 0 && !f.serving():
			return RuleServerHasInstances
		}
		if term := f.core.Term(); f.serving() && term.Standby == "" {
			s.world.truth.hold(s.node, f.fn.function, s.keeper.since[f.fn.index], term.Epoch)
		}
	}
	return cmp.Or(s.view.audit(), kept)
}

// ended hears that an instance is gone.
func (s *scheduler) ended(in *instance) {
	s.spares.ended(in)
	for _, f := range s.all() {
		if f.fn == in.fn {
			f.ended(in)
		}
	}
}

// hearOfEnd lets all schedulers that are there see that an instance is gone.
func (p *platform) hearOfEnd(in *instance) {
	for _, n := range p.world.schedulers {
		if s, is := n.program.(*scheduler); is && n.up() {
			life := n.life
			s.unheard = append(s.unheard, in)
			p.world.at(p.world.between(time.Millisecond, 50*time.Millisecond), func() {
				n.do(life, false, func() {
					s.unheard = slices.DeleteFunc(s.unheard, func(gone *instance) bool { return gone == in })
					s.ended(in)
				})
			})
		}
	}
}
