package etcd

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// handOverTimeout bounds how long the end of Run waits for etcd.
const handOverTimeout = 2 * time.Second

// Keeper holds slots for a scheduler: its share of them, as pkg/ownership/coordinator
// decides. Epoch, Ready and Orphan are for concurrent use.
type Keeper struct {
	config   Config
	deps     Deps
	follower follower
	lessor   lessor
	ready    chan struct{}
	tenure   *tenure

	mu   sync.Mutex // covers everything below
	core *coordinator.Core
}

// tenure is what a Keeper holds, for those who ask for every ticket.
type tenure struct {
	// epochs are those of the slots that are held, else 0.
	epochs [ownership.Slots]atomic.Uint64
	// orphanFrom is when the Keeper will be an orphan; nil if it will not.
	orphanFrom atomic.Pointer[time.Time]
}

// NewKeeper makes a Keeper. It starts nothing.
func NewKeeper(config Config, deps Deps) (*Keeper, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := deps.validate(); err != nil {
		return nil, err
	}
	self := ownership.Member{ID: config.ID, Addr: config.Addr}
	return &Keeper{
		config:   config,
		deps:     deps,
		follower: follower{client: deps.Client, log: deps.Log, keys: keys(config.Prefix), recheck: recheckEvery},
		lessor:   lessor{client: deps.Client, ttl: config.TTL},
		ready:    make(chan struct{}),
		tenure:   &tenure{},
		core:     coordinator.New(coordinator.Config{Self: self, TTL: config.TTL, Settle: config.Settle}, deps.Busy, deps.Named),
	}, nil
}

// Epoch returns the epoch in which the slot is held, and whether it is.
func (k *Keeper) Epoch(slot ownership.Slot) (uint64, bool) {
	if slot >= ownership.Slots {
		return 0, false
	}
	epoch := k.tenure.epochs[slot].Load()
	return epoch, epoch != 0
}

// Ready is closed when for the first time every slot has an owner, here or
// elsewhere.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

// Orphan tells whether the lease could not be renewed for longer than it lasts,
// and since when, though slots are held: etcd is away, or cut off. They are held
// on until somebody else is known to have them.
func (k *Keeper) Orphan() (since time.Time, orphan bool) {
	from := k.tenure.orphanFrom.Load()
	if from == nil || time.Now().Before(*from) {
		return time.Time{}, false
	}
	return *from, true
}

// Run holds slots until ctx ends. Then it hands them over to the other members,
// which takes 2 s at most, and returns nil. It may be called once.
func (k *Keeper) Run(ctx context.Context) error {
	retry := newRetry()
	for ctx.Err() == nil {
		err := k.session(ctx, retry)
		if ctx.Err() != nil {
			break
		}
		k.deps.Log.Warn("keeping slots in etcd was interrupted; the ones held so far still are", "err", err)
		sleep.For(ctx, backoff.Jitter(retry.Next()))
	}
	k.handOver(ctx)
	return nil
}

// session holds slots for as long as the lease lives and etcd answers, and
// returns why it ended.
func (k *Keeper) session(ctx context.Context, retry *backoff.Backoff) error {
	asked := time.Now()
	lease, err := k.lessor.get(ctx, read(k, (*coordinator.Core).Lease))
	if err != nil {
		return err
	}
	k.tell(func() { k.core.Leased(asked, lease) })
	ctx, end := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		end(k.lessor.keep(ctx, lease, func(at time.Time) { k.tell(func() { k.core.Renewed(at) }) }))
	})
	defer func() {
		end(nil)
		renewing.Wait()
		k.tell(k.core.Interrupted)
	}()
	err = k.follow(ctx, retry)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// follow keeps up with etcd and does what follows from it.
func (k *Keeper) follow(ctx context.Context, retry *backoff.Backoff) error {
	watching, listing, err := k.follower.begin(ctx)
	if err != nil {
		return err
	}
	defer watching.end()
	k.listed(listing)
	for {
		if err := k.act(ctx); err != nil {
			return err
		}
		retry.Reset()
		heard, err := watching.next(ctx, read(k, (*coordinator.Core).Wake))
		if err != nil {
			return err
		}
		switch {
		case heard.listing != nil && k.listed(*heard.listing):
			return errRewound
		case heard.entries != nil:
			k.tell(func() { k.core.Seen(time.Now(), heard.entries...) })
		}
	}
}

// act carries out what the core wants.
func (k *Keeper) act(ctx context.Context) error {
	for {
		var txn coordinator.Txn
		var due bool
		k.tell(func() { txn, due = k.core.Next(time.Now()) })
		if !due {
			break
		}
		result, err := k.commit(ctx, txn)
		if err != nil {
			return err
		}
		k.tell(func() { k.core.Answered(time.Now(), txn, result) })
	}
	switch {
	case read(k, (*coordinator.Core).Lease) == 0:
		return errLeaseLost
	case !read(k, (*coordinator.Core).Following):
		return errRewound
	case read(k, (*coordinator.Core).Complete):
		closeOnce(k.ready)
	}
	return nil
}

func (k *Keeper) listed(listing coordinator.Listing) (rewound bool) {
	k.tell(func() { rewound = k.core.Listed(time.Now(), listing) })
	if rewound {
		k.deps.Log.Error("etcd went back to an earlier revision, as after a restore; its owners and epochs replace the known ones",
			"revision", listing.Revision)
	}
	return rewound
}

// tell lets the core know something, and publishes what follows.
func (k *Keeper) tell(what func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what()
	if gained, lost := k.tenure.update(k.core); gained+lost > 0 {
		k.deps.Log.Info("slots changed hands", "gained", gained, "lost", lost, "held", k.core.Holds())
	}
}

// read reads something of the core, which renewals change meanwhile.
func read[T any](k *Keeper, what func(*coordinator.Core) T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return what(k.core)
}

// update takes over what the core holds, and counts the slots that changed hands.
func (t *tenure) update(core *coordinator.Core) (gained, lost int) {
	for i := range t.epochs {
		before, now := t.epochs[i].Load(), core.Epoch(ownership.Slot(i))
		if now == before {
			continue
		}
		t.epochs[i].Store(now)
		switch {
		case before == 0:
			gained++
		case now == 0:
			lost++
		}
	}
	if from, may := core.OrphanFrom(); may {
		t.orphanFrom.Store(&from)
	} else {
		t.orphanFrom.Store(nil)
	}
	return gained, lost
}

// handOver gives the slots to the other members, one key after the other in one
// step each, and lets go of those that nobody can be given.
func (k *Keeper) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTimeout)
	defer cancel()
	lease := read(k, (*coordinator.Core).Lease)
	var err error
	if lease != 0 {
		err = k.giveAll(ctx)
	}
	k.tell(k.core.LetGo)
	if lease == 0 {
		return
	}
	if err == nil {
		err = k.lessor.end(ctx, lease)
	}
	if err != nil {
		k.deps.Log.Warn("handing over the slots failed; others can claim them when the lease ends", "err", err)
	}
}

// giveAll reads first who is there: a transaction that was under way may have
// been carried out.
func (k *Keeper) giveAll(ctx context.Context) error {
	watching := following{follower: &k.follower}
	listing, err := watching.list(ctx)
	if err != nil {
		return err
	}
	k.listed(listing)
	k.tell(k.core.Drain)
	if err := k.act(ctx); err != nil && !errors.Is(err, errLeaseLost) {
		return err
	}
	return nil
}
