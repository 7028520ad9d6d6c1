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

// Coordinator holds a scheduler's share of the slots, as pkg/ownership/coordinator decides.
// Epoch, Ready and Unconfirmed are safe for concurrent use.
type Coordinator struct {
	config   Config
	deps     Deps
	follower follower
	lessor   lessor
	ready    chan struct{}
	held     *heldSlots

	mu   sync.Mutex // covers everything below
	core *coordinator.Core
}

// heldSlots are the slots that a Coordinator holds, for the look-ups of every ticket.
type heldSlots struct {
	// epochs are the epochs of the held slots, and 0 for others.
	epochs [ownership.Slots]atomic.Uint64
	// unconfirmedFrom is when the ownership becomes unconfirmed; nil if it does not.
	unconfirmedFrom atomic.Pointer[time.Time]
}

// NewCoordinator makes a Coordinator. It starts nothing.
func NewCoordinator(config Config, deps Deps) (*Coordinator, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := deps.validate(); err != nil {
		return nil, err
	}
	self := ownership.Member{ID: config.ID, Addr: config.Addr}
	return &Coordinator{
		config:   config,
		deps:     deps,
		follower: follower{client: deps.Client, log: deps.Log, keys: keys(config.Prefix), recheck: recheckEvery},
		lessor:   lessor{client: deps.Client, ttl: config.TTL},
		ready:    make(chan struct{}),
		held:     &heldSlots{},
		core:     coordinator.New(coordinator.Config{Self: self, TTL: config.TTL, Settle: config.Settle}, deps.Busy, deps.ReportedOwner),
	}, nil
}

// Epoch returns the epoch in which the scheduler holds the slot, and whether it does.
func (k *Coordinator) Epoch(slot ownership.Slot) (uint64, bool) {
	if slot >= ownership.Slots {
		return 0, false
	}
	epoch := k.held.epochs[slot].Load()
	return epoch, epoch != 0
}

// Ready is closed as soon as every slot has an owner, this scheduler or another.
func (k *Coordinator) Ready() <-chan struct{} { return k.ready }

// Unconfirmed reports whether the lease could not be renewed for longer than its lifetime
// while slots are held, and since when: etcd is down, or cut off. The Coordinator holds the
// slots until it reads that another scheduler has them.
func (k *Coordinator) Unconfirmed() (since time.Time, unconfirmed bool) {
	from := k.held.unconfirmedFrom.Load()
	if from == nil || time.Now().Before(*from) {
		return time.Time{}, false
	}
	return *from, true
}

// Run holds slots until ctx ends. It then hands them off to the other members, within 2 s, and
// returns nil. It may be called once.
func (k *Coordinator) Run(ctx context.Context) error {
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

// session holds slots while the lease lives and etcd answers, and returns why it ended.
func (k *Coordinator) session(ctx context.Context, retry *backoff.Backoff) error {
	asked := time.Now()
	lease, err := k.lessor.get(ctx, read(k, (*coordinator.Core).Lease))
	if err != nil {
		return err
	}
	k.withCore(func() { k.core.Leased(asked, lease) })
	ctx, end := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() {
		end(k.lessor.keepAlive(ctx, lease, func(at time.Time) { k.withCore(func() { k.core.Renewed(at) }) }))
	})
	defer func() {
		end(nil)
		renewing.Wait()
		k.withCore(k.core.Interrupted)
	}()
	err = k.follow(ctx, retry)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// follow follows etcd and runs the resulting transactions.
func (k *Coordinator) follow(ctx context.Context, retry *backoff.Backoff) error {
	watching, listing, err := k.follower.start(ctx)
	if err != nil {
		return err
	}
	defer watching.stop()
	k.listed(listing)
	for {
		if err := k.runTransactions(ctx); err != nil {
			return err
		}
		retry.Reset()
		got, err := watching.wait(ctx, read(k, (*coordinator.Core).Wake))
		if err != nil {
			return err
		}
		switch {
		case got.listing != nil && k.listed(*got.listing):
			return errRewound
		case got.entries != nil:
			k.withCore(func() { k.core.Seen(time.Now(), got.entries...) })
		}
	}
}

// runTransactions executes the core's transactions.
func (k *Coordinator) runTransactions(ctx context.Context) error {
	for {
		var txn coordinator.Txn
		var due bool
		k.withCore(func() { txn, due = k.core.Next(time.Now()) })
		if !due {
			break
		}
		result, err := k.commit(ctx, txn)
		if err != nil {
			return err
		}
		k.withCore(func() { k.core.Answered(time.Now(), txn, result) })
	}
	switch {
	case read(k, (*coordinator.Core).Lease) == 0:
		return errLeaseLost
	case !read(k, (*coordinator.Core).Following):
		return errOutdated
	case read(k, (*coordinator.Core).Complete):
		closeOnce(k.ready)
	}
	return nil
}

func (k *Coordinator) listed(listing coordinator.Listing) (rewound bool) {
	k.withCore(func() { rewound = k.core.Listed(time.Now(), listing) })
	if rewound {
		k.deps.Log.Error("etcd went back to an earlier revision, as after a restore; its owners and epochs replace the known ones",
			"revision", listing.Revision)
	}
	return rewound
}

// withCore calls the core and publishes the result.
func (k *Coordinator) withCore(what func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	what()
	if gained, lost := k.held.sync(k.core); gained+lost > 0 {
		k.deps.Log.Info("slots changed hands", "gained", gained, "lost", lost, "held", k.core.Holds())
	}
}

// read reads a value of the core, which renewals change concurrently.
func read[T any](k *Coordinator, what func(*coordinator.Core) T) T {
	k.mu.Lock()
	defer k.mu.Unlock()
	return what(k.core)
}

// sync copies the core's holdings and counts the slots that changed hands.
func (t *heldSlots) sync(core *coordinator.Core) (gained, lost int) {
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
	if from, may := core.UnconfirmedFrom(); may {
		t.unconfirmedFrom.Store(&from)
	} else {
		t.unconfirmedFrom.Store(nil)
	}
	return gained, lost
}

// handOver hands the slots off to the other members, and releases those that no member
// can get.
func (k *Coordinator) handOver(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTimeout)
	defer cancel()
	lease := read(k, (*coordinator.Core).Lease)
	var err error
	if lease != 0 {
		err = k.drain(ctx)
	}
	k.withCore(k.core.ReleaseAll)
	if lease == 0 {
		return
	}
	if err == nil {
		err = k.lessor.revoke(ctx, lease)
	}
	if err != nil {
		k.deps.Log.Warn("handing over the slots failed; others can claim them when the lease ends", "err", err)
	}
}

// drain hands off all slots. It reads the keys first: a transaction that was under way
// may have been committed. It reads them again if a transaction shows that they have changed,
// because slots without an owner wait for the end of the lease.
func (k *Coordinator) drain(ctx context.Context) error {
	k.withCore(k.core.Drain)
	for {
		watching := following{follower: &k.follower}
		listing, err := watching.list(ctx)
		if err != nil {
			return err
		}
		k.listed(listing)
		err = k.runTransactions(ctx)
		if errors.Is(err, errLeaseLost) {
			return nil
		}
		if !errors.Is(err, errOutdated) {
			return err
		}
	}
}
