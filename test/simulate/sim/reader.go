package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// recheckEvery is how often what is known of etcd is compared with all there is.
const recheckEvery = 4 * time.Second

// reader lists and follows what etcd has, for a node, again and again.
type reader struct {
	*node
	listed      func(l coordinator.Listing, asked time.Time)
	saw         func([]coordinator.Entry)
	interrupted func()
	// busy says that something is under way whose outcome a listing that is
	// asked for now might not have.
	busy func() bool

	tries    int
	watching *watch
	// listing says that a listing is under way, and lists counts those that were asked for.
	listing bool
	lists   int
	// held are news that came while a listing was under way. Which of the two
	// is later is not known, so they are taken behind it.
	held [][]coordinator.Entry
}

func (r *reader) boot() {
	r.list()
	r.every(recheckEvery, func() {
		if r.watching != nil && !r.busy() {
			r.list()
		}
	})
}

// list asks for all there is, and follows it from then on.
func (r *reader) list() {
	if !r.listing {
		r.relist()
	}
}

// relist does so even if a listing is under way. What was asked for before counts no more.
func (r *reader) relist() {
	r.listing = true
	r.lists++
	e, asked, mine := r.world.etcd, r.now(), r.lists
	e.ask(r.node, func() any { return e.listing() }, func(answer any, ok bool) {
		if r.lists != mine {
			return
		}
		r.listing = false
		switch {
		case ok:
			r.tries = 0
			r.take(answer.(coordinator.Listing), asked)
		case r.watching == nil:
			r.again()
		}
		held := r.held
		r.held = nil
		for _, news := range held {
			r.saw(news)
		}
	})
}

func (r *reader) take(l coordinator.Listing, asked time.Time) {
	r.listed(l, asked)
	if r.watching != nil {
		return
	}
	var x *watch
	x = r.world.etcd.watch(r.node, l.Revision, r.news, func() {
		if r.watching == x {
			r.restart()
		}
	})
	r.watching = x
}

func (r *reader) news(entries []coordinator.Entry) {
	if r.listing {
		r.held = append(r.held, entries)
		return
	}
	r.saw(entries)
}

// restart begins anew, after a pause.
func (r *reader) restart() {
	if r.watching != nil {
		r.watching.over = true
		r.watching = nil
	}
	r.held = nil
	r.interrupted()
	r.again()
}

func (r *reader) again() {
	r.tries++
	r.after(min(time.Duration(r.tries)*50*time.Millisecond, time.Second), func() {
		if r.watching == nil {
			r.list()
		}
	})
}
