package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// claimBatch is how many slots one transaction claims; etcd allows for
	// 128 operations.
	claimBatch = 120
	// giveBackTimeout bounds how long the end of Run waits for etcd.
	giveBackTimeout = 2 * time.Second
)

var errLeaseLost = errors.New("etcd: the lease was lost")

// Keeper holds slots for a scheduler: every one that nobody else holds. Epoch and
// Ready are for concurrent use.
type Keeper struct {
	config   Config
	deps     Deps
	follower follower
	self     member
	ready    chan struct{}
	// held is the epoch of each slot that is held, else 0.
	held [ownership.Slots]atomic.Uint64

	// What follows is Run's alone.

	lease clientv3.LeaseID
	// left are own keys under other leases, see table.left.
	left  map[ownership.Slot]int64
	retry backoff
}

// NewKeeper makes a Keeper. It starts nothing.
func NewKeeper(config Config, deps Deps) (*Keeper, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if err := deps.validate(); err != nil {
		return nil, err
	}
	return &Keeper{
		config:   config,
		deps:     deps,
		follower: follower{client: deps.Client, log: deps.Log, keys: keys(config.Prefix), table: new(table), recheck: recheckEvery},
		self:     member{ID: config.ID, Addr: config.Addr},
		ready:    make(chan struct{}),
	}, nil
}

// Epoch returns the epoch in which the slot is held, and whether it is.
func (k *Keeper) Epoch(slot ownership.Slot) (uint64, bool) {
	if slot >= ownership.Slots {
		return 0, false
	}
	epoch := k.held[slot].Load()
	return epoch, epoch != 0
}

// Ready is closed when for the first time every slot has an owner, here or
// elsewhere.
func (k *Keeper) Ready() <-chan struct{} { return k.ready }

// Run holds slots until ctx ends. Then it gives them back, which takes 2 s at
// most, and returns nil. It may be called once.
func (k *Keeper) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := k.session(ctx)
		if ctx.Err() != nil {
			break
		}
		k.deps.Log.Warn("keeping slots in etcd was interrupted; the ones held so far still are", "err", err)
		k.retry.wait(ctx)
	}
	k.giveBack(ctx)
	return nil
}

// session holds slots for as long as the lease lives and etcd answers, and
// returns why it ended.
func (k *Keeper) session(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	alive, err := k.keepLease(ctx)
	if err != nil {
		end(nil)
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range alive {
			// The client renews the lease; that it says so is no news.
		}
		end(errLeaseLost)
	}()
	defer func() {
		end(nil)
		<-ended
	}()

	if err := k.putMember(ctx); err != nil {
		return err
	}
	err = k.follower.run(ctx, k.updated)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// keepLease keeps alive the lease of the session before, or a new one if that
// has ended: after an outage of etcd nothing then has to change hands. The
// channel is closed when the lease is lost.
func (k *Keeper) keepLease(ctx context.Context) (<-chan *clientv3.LeaseKeepAliveResponse, error) {
	request, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if k.lease != clientv3.NoLease {
		answer, err := k.deps.Client.TimeToLive(request, k.lease)
		if err != nil {
			return nil, fmt.Errorf("etcd: asking for the lease: %w", err)
		}
		if answer.TTL <= 0 {
			k.lease = clientv3.NoLease
		}
	}
	if k.lease == clientv3.NoLease {
		seconds := int64((k.config.TTL + time.Second - 1) / time.Second)
		answer, err := k.deps.Client.Grant(request, seconds)
		if err != nil {
			return nil, fmt.Errorf("etcd: getting a lease: %w", err)
		}
		k.lease = answer.ID
	}
	alive, err := k.deps.Client.KeepAlive(ctx, k.lease)
	if err != nil {
		return nil, fmt.Errorf("etcd: keeping the lease: %w", err)
	}
	return alive, nil
}

func (k *Keeper) putMember(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	key := k.follower.keys.member(k.config.ID)
	if _, err := k.deps.Client.Put(ctx, key, k.self.encode(), clientv3.WithLease(k.lease)); err != nil {
		return fmt.Errorf("etcd: writing the member's key: %w", err)
	}
	return nil
}

// updated claims what can be claimed. Each transaction claims all of its slots
// or tells what became of them, so the rounds come to an end.
func (k *Keeper) updated(ctx context.Context, listed bool) error {
	k.left = nil
	if listed {
		// Only now: of two Keepers with one ID that took from each other
		// whenever they saw a change, neither would ever stop.
		k.left = k.follower.table.left(k.config.ID, k.lease)
	}
	gained, lost := k.settle()
	for {
		wanted := k.follower.table.claimable(k.left)
		if len(wanted) == 0 {
			break
		}
		for batch := range slices.Chunk(wanted, claimBatch) {
			if err := k.claim(ctx, batch); err != nil {
				return err
			}
			g, l := k.settle()
			gained, lost = gained+g, lost+l
		}
	}
	if gained+lost > 0 {
		k.deps.Log.Info("slots changed hands", "gained", gained, "lost", lost)
	}
	k.retry.reset()
	closeOnce(k.ready)
	return nil
}

// settle brings what is held in line with the table.
func (k *Keeper) settle() (gained, lost int) {
	for i := range k.held {
		before := k.held[i].Load()
		now := k.follower.table.slots[i].holding(k.config.ID, k.lease, before)
		if now == before {
			continue
		}
		k.held[i].Store(now)
		switch {
		case before == 0:
			gained++
		case now == 0:
			lost++
		}
	}
	return gained, lost
}

// claim takes all of the slots, or reads who has them.
func (k *Keeper) claim(ctx context.Context, slots []ownership.Slot) error {
	var conditions []clientv3.Cmp
	var puts, gets []clientv3.Op
	for _, slot := range slots {
		key := k.follower.keys.slot(slot)
		condition := clientv3.Compare(clientv3.CreateRevision(key), "=", 0)
		if k.follower.table.slots[slot].exists {
			condition = clientv3.Compare(clientv3.ModRevision(key), "=", k.left[slot])
		}
		conditions = append(conditions, condition)
		puts = append(puts, clientv3.OpPut(key, k.self.encode(), clientv3.WithLease(k.lease)))
		gets = append(gets, clientv3.OpGet(key))
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := k.deps.Client.Txn(ctx).If(conditions...).Then(puts...).Else(gets...).Commit()
	if err != nil {
		return fmt.Errorf("etcd: claiming slots: %w", err)
	}
	revision := answer.Header.Revision
	for i, slot := range slots {
		if answer.Succeeded {
			k.follower.table.put(slot, &k.self, k.lease, revision)
		} else if kvs := answer.Responses[i].GetResponseRange().Kvs; len(kvs) == 0 {
			k.follower.table.remove(slot, revision)
		} else {
			k.follower.table.put(slot, k.follower.owner(kvs[0].Value), clientv3.LeaseID(kvs[0].Lease), kvs[0].ModRevision)
		}
	}
	return nil
}

// giveBack lets go of all slots, first here and then in etcd.
func (k *Keeper) giveBack(ctx context.Context) {
	for i := range k.held {
		k.held[i].Store(0)
	}
	if k.lease == clientv3.NoLease {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	if _, err := k.deps.Client.Revoke(ctx, k.lease); err != nil {
		k.deps.Log.Warn("giving back the slots failed; others can claim them when the lease ends", "err", err)
	}
}
