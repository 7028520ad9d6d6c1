package sim

import (
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
	"github.com/windlass-dev/windlass/pkg/scheduler/core"
)

// directory is what a gateway or a scheduler knows of who owns what, and of who
// is there.
type directory struct {
	*node
	changed func()
	view    coordinator.View
	owners  ownership.Map
	// read says that etcd was.
	read       bool
	heartbeats []*heartbeats
	// looked is when the beats were looked at last.
	looked time.Time
	// talk is what is said with beats; nil for a gateway.
	talk *placer
	// learned is when somebody else than etcd has named each function's owner.
	learned []time.Time
	// seen is the epoch of each function that was known after the last step.
	seen []uint64
	// refuted is the highest epoch of each that etcd has replaced by a lower one.
	refuted []uint64
}

func newDirectory(n *node, changed func()) *directory {
	return &directory{node: n, changed: changed, seen: make([]uint64, len(n.world.functions)), refuted: make([]uint64, len(n.world.functions)), learned: make([]time.Time, len(n.world.functions))}
}

func (d *directory) boot() {
	d.every(ownership.HeartbeatInterval, d.look)
}

// newReader is a reader of etcd for this directory alone.
func (d *directory) newReader() *reader {
	return &reader{node: d.node, listed: d.listed, confirmed: d.confirmed, saw: d.saw, interrupted: func() {}, busy: func() bool { return false }}
}

// listed takes a listing of etcd, for which the node has asked at a time.
func (d *directory) listed(l coordinator.Listing, asked time.Time) (rewound bool) {
	rewound = d.view.Listed(l)
	if rewound {
		d.note("sees etcd rewound", uint64(l.Revision), 0)
	}
	for _, fn := range d.world.functions {
		// What somebody else has named meanwhile may be newer.
		d.refresh(fn, rewound || d.learned[fn.index].Before(asked))
	}
	d.read = true
	d.membersChanged()
	d.changed()
	return rewound
}

// confirmed hears that what is known of etcd was so, when that was asked.
func (d *directory) confirmed(asked time.Time) {
	for _, fn := range d.world.functions {
		d.refresh(fn, d.learned[fn.index].Before(asked))
	}
	d.changed()
}

// seed takes what a scheduler knows, unless etcd was read.
func (d *directory) seed(known *ownership.Map) {
	if d.read {
		return
	}
	for _, fn := range d.world.functions {
		if owner, named := known.Owner(fn.slot); named && d.owners.Update(fn.slot, owner) {
			d.learned[fn.index] = d.now()
		}
	}
	d.owners.SetMembers(known.Members())
	d.followAll()
	d.changed()
}

// saw takes news of a watch.
func (d *directory) saw(news []coordinator.Entry) {
	members := false
	for _, e := range news {
		if d.view.Apply(e) && e.Key.Member != "" {
			members = true
		}
	}
	for _, fn := range d.world.functions {
		d.refresh(fn, false)
	}
	if members {
		d.membersChanged()
	}
	d.changed()
}

// refresh takes a slot's owner from what is known of etcd. Of a listing it is
// certain, whatever somebody else has named meanwhile.
func (d *directory) refresh(fn *function, certain bool) {
	owner, current := d.view.Owner(fn.slot)
	switch {
	case !current:
	case certain:
		if before, _ := d.owners.Owner(fn.slot); before.Epoch > owner.Epoch {
			d.refuted[fn.index] = max(d.refuted[fn.index], before.Epoch)
		}
		d.owners.Reset(fn.slot, owner)
	default:
		d.owners.Update(fn.slot, owner)
	}
}

// learn takes what somebody else says.
func (d *directory) learn(fn *function, owner ownership.Owner) {
	if d.owners.Merge(fn.slot, owner) {
		if owner.Epoch <= d.refuted[fn.index] {
			d.world.violate(RuleRefutedForGood, 0)
		}
		d.learned[fn.index] = d.now()
		d.changed()
	}
}

// lastEpoch is the highest epoch of the functions' slots. The others never change
// hands.
func (d *directory) lastEpoch() uint64 {
	last := uint64(0)
	for _, fn := range d.world.functions {
		owner, _ := d.owners.Owner(fn.slot)
		last = max(last, owner.Epoch)
	}
	return last
}

// route is where a function's tickets and pulls go.
func (d *directory) route(fn *function) (ownership.Owner, bool, bool) {
	return d.owners.Route(fn.slot, d.silent)
}

func (d *directory) silent(id string) bool {
	for _, b := range d.heartbeats {
		if b.id == id {
			return b.pulse.Silent()
		}
	}
	return false
}

func (d *directory) membersChanged() {
	d.owners.SetMembers(d.view.Members())
	d.followAll()
}

// followAll lets every member and every owner be asked whether it is there.
func (d *directory) followAll() {
	for _, m := range d.owners.Members() {
		d.follow(m.ID)
	}
	for _, fn := range d.world.functions {
		if owner, known := d.owners.Owner(fn.slot); known {
			d.follow(owner.ID)
		}
	}
}

func (d *directory) follow(id string) {
	if id == d.name {
		return
	}
	for _, b := range d.heartbeats {
		if b.id == id {
			return
		}
	}
	b := &heartbeats{directory: d, id: id, pulse: ownership.NewFailureDetector(d.now())}
	d.heartbeats = append(d.heartbeats, b)
	b.dial()
}

// look lets time pass for the beats.
func (d *directory) look() {
	now, stood := d.now(), false
	if !d.looked.IsZero() {
		stood = now.Sub(d.looked) >= core.PauseThreshold
	}
	d.looked = now
	for _, b := range d.heartbeats {
		was := b.pulse.Silent()
		b.set(b.pulse.Advance(now))
		if stood && !was && b.pulse.Silent() {
			d.world.violate(RuleOwnSilence, 0)
		}
		if b.open && b.pulse.ReconnectDue(d.now()) {
			// A new stream may be of use, as after a partition.
			b.stream.close(d.node)
			b.closed(reset)
		}
		b.ask()
	}
}

// audit says whether what is known went back.
func (d *directory) audit() Rule {
	var wrong Rule
	for i, fn := range d.world.functions {
		owner, _ := d.owners.Owner(fn.slot)
		if owner.Epoch < d.seen[i] && d.world.etcd.history == 0 {
			wrong = RuleEpochRises
		}
		d.seen[i] = owner.Epoch
	}
	return wrong
}

// heartbeats is the stream that asks one scheduler whether it is there.
type heartbeats struct {
	directory *directory
	id        string
	stream    *stream
	open      bool
	// stood says that the scheduler has answered on the stream.
	stood bool
	pulse ownership.FailureDetector
	// behind is since when the scheduler has known more.
	behind time.Time
}

func (b *heartbeats) dial() {
	to := b.directory.world.nodeOf(b.id)
	if to == nil {
		return
	}
	b.stream = b.directory.dial(to, openHeartbeats{}, b)
}

func (b *heartbeats) opened() {
	b.open = true
	b.ask()
}

func (b *heartbeats) ask() {
	if b.open {
		m := heartbeat{}
		if talk := b.directory.talk; talk != nil {
			m = heartbeat{from: b.directory.name, lacks: talk.asks(b.id)}
		}
		b.stream.send(b.directory.node, m)
	}
}

func (b *heartbeats) take(m any) {
	switch m := m.(type) {
	case heartbeatReply:
		b.stood = true
		b.set(b.pulse.Answered(b.directory.now(), m.serving))
		b.catchUp(m.epoch)
		if talk := b.directory.talk; talk != nil {
			talk.answered(b.id, m.made)
		}
	case slots:
		for _, fn := range b.directory.world.functions {
			if owner, named := m.known.Owner(fn.slot); named {
				b.directory.learn(fn, owner)
			}
		}
	}
}

// closed opens the stream again, at once if it ever stood. If it did not, nobody is
// there.
func (b *heartbeats) closed(closing) {
	pause := 20 * time.Millisecond
	if !b.stood {
		b.set(b.pulse.Refused())
		pause = 200 * time.Millisecond
	}
	b.open, b.stood = false, false
	b.directory.after(pause, b.dial)
}

// catchUpAfter is how long a scheduler may have known more before it is asked.
const catchUpAfter = time.Second

// catchUp asks the scheduler for the slots if it has known more of them for a while.
func (b *heartbeats) catchUp(epoch uint64) {
	now := b.directory.now()
	switch {
	case epoch <= b.directory.lastEpoch():
		b.behind = time.Time{}
	case b.behind.IsZero():
		b.behind = now
	case now.Sub(b.behind) >= catchUpAfter:
		b.stream.send(b.directory.node, askSlots{})
	}
}

// set replaces the pulse, and tells if that changes the routes.
func (b *heartbeats) set(p ownership.FailureDetector) {
	was := b.pulse.Silent()
	b.pulse = p
	if p.Silent() != was {
		word := "hears again"
		if p.Silent() {
			word = "finds silent"
		}
		b.directory.note(word, uint64(b.id[1]), 0)
		b.directory.changed()
	}
}
