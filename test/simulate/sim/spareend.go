package sim

import (
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// openSpare is what a spare instance opens to its scheduler. Which instance it is, is
// written on its pod.
type openSpare struct{ agent *agent }

// spareEnd is a scheduler's end of the stream of a spare instance.
type spareEnd struct {
	scheduler *scheduler
	agent     *agent
	stream    *stream
	// of is the spare instance; nil before its hello, and if it is a function's.
	of *entry
}

func (e *spareEnd) opened() {}

func (e *spareEnd) take(m any) {
	switch m.(type) {
	case core.Hello:
		e.hello()
	case core.Ping:
		e.say(core.Pong{})
	case core.Goodbye, hangUpRequest:
		if e.of != nil {
			e.of.leaving = true
		}
		e.closed(hungUp)
		e.stream.close(e.scheduler.node)
	}
}

func (e *spareEnd) say(r core.Reply) { e.stream.send(e.scheduler.node, r) }

// hello lets the instance be taken. One that was taken already, and does not know it since
// its stream broke, is told.
func (e *spareEnd) hello() {
	s, in := e.scheduler, e.agent.instance
	if in.fn == s.spares.unit {
		known := s.spares.inventory.find(in.cid)
		if known == nil {
			e.stream.close(s.node)
			return
		}
		e.of, known.spare = known, e
		known.pulled, known.connected, in.ready, s.spares.failing = true, true, true, false
		e.say(core.Welcome{})
		return
	}
	f := s.lookup(in.fn)
	if f == nil || f.inventory.find(in.cid) == nil || f.inventory.find(in.cid).pulled {
		e.stream.close(s.node)
		return
	}
	e.say(core.Welcome{})
	e.assign(f)
}

// assign says whose the instance is from now on.
func (e *spareEnd) assign(f *served) {
	e.say(core.Assignment{
		StartupTimeout: startupTimeout, Concurrency: f.fn.concurrency, BackoffAfter: backoffAfter, IdleTimeout: idleTimeout,
	})
}

func (e *spareEnd) closed(closing) {
	if e.of != nil && e.of.spare == e {
		e.of.spare, e.of.connected, e.of.silentSince = nil, false, e.scheduler.now()
	}
}
