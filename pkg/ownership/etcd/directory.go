package etcd

import (
	"context"
	"sync/atomic"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Directory tells who owns a slot. It is for concurrent use.
type Directory struct {
	follower follower
	deps     Deps
	ready    chan struct{}
	owners   atomic.Pointer[[ownership.Slots]ownership.Owner]
}

// NewDirectory makes a Directory of the slots under a prefix, which is that of
// the Keepers' Config. It starts nothing.
func NewDirectory(prefix string, deps Deps) (*Directory, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	if err := deps.validate(); err != nil {
		return nil, err
	}
	d := &Directory{
		follower: follower{client: deps.Client, log: deps.Log, keys: keys(prefix), table: new(table), recheck: recheckEvery},
		deps:     deps,
		ready:    make(chan struct{}),
	}
	d.owners.Store(new([ownership.Slots]ownership.Owner))
	return d, nil
}

// Owner returns the owner of a slot that was named last: while a slot has no
// owner, or etcd cannot be reached, it is the one before. It is false only for
// a slot that had no owner since Run began.
func (d *Directory) Owner(slot ownership.Slot) (ownership.Owner, bool) {
	if slot >= ownership.Slots {
		return ownership.Owner{}, false
	}
	owner := d.owners.Load()[slot]
	return owner, owner.Epoch != 0
}

// Ready is closed when all slots have been read for the first time.
func (d *Directory) Ready() <-chan struct{} { return d.ready }

// Run keeps up with etcd until ctx ends, and then returns nil. It may be called
// once.
func (d *Directory) Run(ctx context.Context) error {
	var retry backoff
	updated := func(_ context.Context, listed bool) error {
		d.publish()
		if listed {
			retry.reset()
			closeOnce(d.ready)
		}
		return nil
	}
	for {
		err := d.follower.run(ctx, updated)
		if ctx.Err() != nil {
			return nil
		}
		d.deps.Log.Warn("following the owners of slots was interrupted; the last known ones still count", "err", err)
		retry.wait(ctx)
	}
}

func (d *Directory) publish() {
	owners := new([ownership.Slots]ownership.Owner)
	for i := range owners {
		owners[i] = d.follower.table.slots[i].owner
	}
	d.owners.Store(owners)
}

// closeOnce closes a channel that only its caller closes.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
