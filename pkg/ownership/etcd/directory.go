package etcd

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// Directory follows the owner of each slot, and the members. It is safe for concurrent use.
type Directory struct {
	follower follower
	deps     Deps
	ready    chan struct{}
	changed  chan struct{}

	mu      sync.RWMutex // covers everything below
	view    coordinator.View
	current *ownership.Map // which is replaced, and never changed
	// listed says that etcd was read.
	listed bool
}

// NewDirectory makes a Directory of the slots under the prefix of the Coordinators' Config. It
// starts nothing.
func NewDirectory(prefix string, deps Deps) (*Directory, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	if err := deps.validate(); err != nil {
		return nil, err
	}
	d := &Directory{
		follower: follower{client: deps.Client, log: deps.Log, keys: keys(prefix), recheck: recheckEvery},
		deps:     deps,
		ready:    make(chan struct{}),
		changed:  make(chan struct{}, 1),
		current:  new(ownership.Map),
	}
	return d, nil
}

// Owner returns the last known owner of a slot. While a slot has no owner, or etcd cannot be
// reached, that is the previous one. It is false only for a slot that had no owner since Run
// began.
func (d *Directory) Owner(slot ownership.Slot) (ownership.Owner, bool) {
	return d.Map().Owner(slot)
}

// Map is the present view. Callers must not change it.
func (d *Directory) Map() *ownership.Map {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.current
}

// Changed receives a value after the map has changed, one for all changes since the last read.
// It is for one reader.
func (d *Directory) Changed() <-chan struct{} { return d.changed }

// Ready is closed after all slots have been read for the first time, or after Seed.
func (d *Directory) Ready() <-chan struct{} { return d.ready }

// Update sets an owner that a scheduler or a gateway named if its epoch is higher than
// the known one, and reports whether it did. The next comparison with etcd, every 4 s,
// may correct it.
func (d *Directory) Update(slot ownership.Slot, owner ownership.Owner) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, _ := d.current.Owner(slot); owner.Epoch <= known.Epoch {
		return false
	}
	next := d.current.Clone()
	if !next.Merge(slot, owner) {
		return false
	}
	d.publish(next)
	return true
}

// Seed loads another program's view, so that this one can start while etcd cannot be reached.
// Once etcd has been read, Seed does nothing.
func (d *Directory) Seed(known *ownership.Map) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.listed {
		return
	}
	d.publish(known.Clone())
	closeOnce(d.ready)
}

// Run follows etcd until ctx ends, and then returns nil. It may be called once.
func (d *Directory) Run(ctx context.Context) error {
	retry := newRetry()
	for {
		err := d.follow(ctx, retry)
		if ctx.Err() != nil {
			return nil
		}
		d.deps.Log.Warn("following the owners of slots was interrupted; the last known ones still count", "err", err)
		sleep.For(ctx, backoff.Jitter(retry.Next()))
	}
}

func (d *Directory) follow(ctx context.Context, retry *backoff.Backoff) error {
	// Ends the watch.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching, listing, err := d.follower.start(ctx)
	if err != nil {
		return err
	}
	defer watching.stop()
	retry.Reset()
	got := storeUpdate{listing: &listing}
	for first := true; ; first = false {
		if d.apply(got) && !first {
			return errRewound
		}
		if got, err = watching.wait(ctx, time.Time{}); err != nil {
			return err
		}
	}
}

// apply applies an update from etcd. It returns true if the store has another history.
func (d *Directory) apply(got storeUpdate) (rewound bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if got.listing != nil {
		if rewound = d.view.Listed(*got.listing); rewound {
			d.deps.Log.Error("etcd went back to an earlier revision, as after a restore; its owners and epochs replace the known ones",
				"revision", got.listing.Revision)
		}
	}
	for _, entry := range got.entries {
		d.view.Apply(entry)
	}
	if next, news := d.mergeView(got.entries == nil); news {
		d.publish(next)
	}
	if got.listing != nil {
		d.listed = true
		closeOnce(d.ready)
	}
	return rewound
}

// mergeView merges the owners that keys name into the map, and reports whether that changes
// it. If certain is not set, an owner of a higher epoch that another program has named stays,
// because changes arrive late.
func (d *Directory) mergeView(certain bool) (next *ownership.Map, news bool) {
	next = d.current.Clone()
	for i := range ownership.Slots {
		slot := ownership.Slot(i)
		owner, current := d.view.Owner(slot)
		if known, _ := next.Owner(slot); !current || owner == known {
			continue
		}
		if certain {
			next.Reset(slot, owner)
			news = true
		} else if next.Update(slot, owner) {
			news = true
		}
	}
	if members := d.view.Members(); !slices.Equal(members, next.Members()) {
		next.SetMembers(members)
		news = true
	}
	return next, news
}

func (d *Directory) publish(next *ownership.Map) {
	d.current = next
	select {
	case d.changed <- struct{}{}:
	default: // a reader will find this change too
	}
}

// closeOnce closes a channel that only its caller closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
