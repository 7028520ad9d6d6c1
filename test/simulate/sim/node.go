package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// program is what runs on a node while it is up. A restart makes a new one: what
// the old one knew is gone.
type program interface {
	// boot starts it.
	boot()
	// accept answers a stream that somebody opens; nil refuses it.
	accept(c *stream, opening any) sink
	// audit says what is wrong with its state; empty if nothing is.
	audit() Rule
}

// mortal is a program whose death somebody else must hear of.
type mortal interface{ died() }

// late is what could not run because its node stood still.
type late struct {
	run   func()
	timer bool
}

// node is one process and the machine that it runs on.
type node struct {
	world   *World
	name    string
	machine int
	clock   clock
	program program
	// life counts the starts; it is even while the node is down.
	life   int
	paused bool
	// startedAt and pausedAt are when it began to run and to stand still, heldAt when it last may have noticed
	// that, and silentUntil until when it must order nothing for it.
	startedAt, pausedAt, heldAt, silentUntil time.Time
	// turned is when it last started, died, stood still or went on, in the world's time.
	turned time.Duration
	// dark says that the machine is off, too, so that nobody is told that
	// the process is gone.
	dark    bool
	waiting []late
	streams []*stream
	// draining says that the process was told to stop and is at it.
	draining bool
	// news is when it last hears of a change of a function, by the function's index.
	news map[int]time.Duration
}

func (n *node) up() bool { return n.life%2 == 1 }

// now is what the node's clock shows.
func (n *node) now() time.Time { return n.clock.read(n.world.now) }

// start boots a program on a node that is down.
func (n *node) start(p program) {
	n.life++
	n.turned = n.world.now
	n.dark, n.draining = false, false
	n.program = p
	n.startedAt, n.heldAt, n.silentUntil = n.now(), time.Time{}, time.Time{}
	n.note("starts", uint64(n.life), 0)
	n.disturb()
	n.run(p.boot)
}

// kill ends the process. The streams that it had are reset, unless its machine
// is off.
func (n *node) kill(dark bool) {
	if !n.up() {
		return
	}
	if p, told := n.program.(mortal); told {
		p.died()
	}
	n.note("dies", uint64(n.life), 0)
	n.disturb()
	n.life++
	n.turned = n.world.now
	n.paused, n.waiting, n.dark = false, nil, dark
	if dark {
		n.world.disturbFor(keepAlive)
	}
	streams := n.streams
	n.streams = nil
	for _, s := range streams {
		s.abandon(n, dark)
	}
}

// disturb notes that a server starts or dies.
func (n *node) disturb() {
	if n.name[0] != 'i' {
		n.world.disturb()
	}
}

// pause lets the process stand still; its kernel goes on taking what comes.
func (n *node) pause() { n.paused, n.pausedAt, n.turned = true, n.now(), n.world.now }

// resume lets the process go on: everything that it missed happens now.
func (n *node) resume() {
	if !n.paused {
		return
	}
	n.paused, n.turned = false, n.world.now
	n.stood()
	missed := n.waiting
	n.waiting = nil
	if n.world.chance(0.3) {
		// Whether it looks at its timers or at its sockets first is chance.
		timersFirst := make([]late, 0, len(missed))
		for _, timers := range []bool{true, false} {
			for _, m := range missed {
				if m.timer == timers {
					timersFirst = append(timersFirst, m)
				}
			}
		}
		missed = timersFirst
	}
	life := n.life
	for _, m := range missed {
		if n.life == life {
			n.do(life, m.timer, m.run)
		}
	}
}

// stood works out until when a scheduler that stood still must order nothing. One that
// stood still for about as long as counts, or had just started, may notice that or not.
func (n *node) stood() {
	now := n.now()
	stood, since := now.Sub(n.pausedAt), now.Sub(n.heldAt)
	if stood < core.PauseThreshold-core.AuditEvery {
		return
	}
	n.heldAt = now
	notices := stood >= core.PauseThreshold && n.pausedAt.Sub(n.startedAt) >= core.AuditEvery
	if notices && since > 2*core.PauseHold {
		n.silentUntil = now.Add(core.PauseHold)
	}
}

// do runs f on the node in the given life, later if it stands still. One that is down does
// nothing, though its life of then has a number, too.
func (n *node) do(life int, timer bool, f func()) {
	switch {
	case n.life != life || !n.up() || n.world.violation != nil:
	case n.paused:
		n.waiting = append(n.waiting, late{f, timer})
	default:
		n.run(f)
	}
}

// run runs f and looks at what it has done.
func (n *node) run(f func()) {
	f()
	n.world.steps++
	if n.up() {
		if wrong := n.program.audit(); wrong != "" {
			n.world.violate(wrong, 0)
		}
	}
}

// after runs f once d has passed on the node's clock, if the process still lives
// then.
func (n *node) after(d time.Duration, f func()) {
	life := n.life
	n.world.at(n.clock.span(d), func() { n.do(life, true, f) })
}

// every runs f from time to time for as long as the process lives.
func (n *node) every(d time.Duration, f func()) {
	n.after(d, func() {
		f()
		n.every(d, f)
	})
}

// note writes a line of the trace.
func (n *node) note(what string, a, b uint64) { n.world.note(n.name, what, a, b) }
