package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// recheckEvery is how often what is known of etcd is compared with what it has.
const recheckEvery = 4 * time.Second

// reader lists and follows what etcd has, for a node, again and again.
type reader struct {
	*node
	// listed reports whether etcd has another history than before, and confirmed hears that
	// nothing has changed.
	listed      func(l coordinator.Listing, asked time.Time) (rewound bool)
	confirmed   func(asked time.Time)
	saw         func([]coordinator.Entry)
	interrupted func()
	// busy says that something is under way whose outcome a listing that is
	// asked for now might not have.
	busy func() bool

	tries    int
	watching *watch
	// known is the product's, since the watch began.
	known coordinator.Comparison
	// listing says that a listing or a comparison is under way, and lists counts those that were asked
	// for.
	listing bool
	lists   int
	// held are news that came while a listing was under way. Which of the two
	// is later is not known, so they are taken behind it.
	held [][]coordinator.Entry
}

func (r *reader) boot() {
	r.list()
	r.every(recheckEvery, func() {
		switch {
		case r.watching == nil || r.busy() || r.listing:
		case r.known.Lists():
			r.list()
		default:
			r.compare()
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
	e, asked := r.world.etcd, r.now()
	r.ask(func() any { return e.listing() }, func(answer any) {
		r.tries = 0
		r.take(answer.(coordinator.Listing), asked)
	})
}

// compare asks for the number of keys and the last write, and lists all if these are not known.
func (r *reader) compare() {
	e, asked := r.world.etcd, r.now()
	r.ask(func() any { return e.glance() }, func(answer any) {
		switch g := answer.(glance); {
		case r.watching == nil: // it has begun again meanwhile
			r.relist()
		case r.known.Saw(g.revision):
			r.restart()
		case r.known.Same(g.keys, g.last...):
			r.confirmed(asked)
		default:
			r.relist()
		}
	})
}

// ask reads etcd, and takes what the watch told meanwhile behind the answer. Without an answer, a reader that follows
// goes on.
func (r *reader) ask(read func() any, then func(answer any)) {
	r.listing = true
	r.lists++
	mine := r.lists
	r.world.etcd.ask(r.node, read, func(answer any, ok bool) {
		if r.lists != mine {
			return
		}
		r.listing = false
		switch {
		case ok:
			then(answer)
		case r.watching == nil:
			r.again()
		}
		if r.listing {
			return
		}
		held := r.held
		r.held = nil
		for _, news := range held {
			r.apply(news)
		}
	})
}

func (r *reader) take(l coordinator.Listing, asked time.Time) {
	if r.known.Saw(l.Revision) {
		r.restart()
		return
	}
	r.known.Listed(r.world.etcd.lastWrites(l))
	rewound := r.listed(l, asked)
	switch {
	case r.watching == nil:
		r.follow(l.Revision)
	case rewound:
		r.restart()
	}
}

// follow watches changes after a revision.
func (r *reader) follow(after int64) {
	var x *watch
	x = r.world.etcd.watch(r.node, after, r.news, func() {
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
	r.apply(entries)
}

func (r *reader) apply(entries []coordinator.Entry) {
	for _, e := range entries {
		if r.known.Saw(e.Revision); e.Absent {
			r.known.Deleted(keyName(e.Key))
		} else {
			r.known.Changed(lastWriteOf(e))
		}
	}
	r.saw(entries)
}

// restart begins again, after a pause.
func (r *reader) restart() {
	if r.watching != nil {
		r.watching.over = true
		r.watching = nil
	}
	r.held, r.known = nil, coordinator.Comparison{}
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
