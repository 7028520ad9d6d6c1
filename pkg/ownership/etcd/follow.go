package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// requestTimeout bounds each request to etcd.
	requestTimeout = 5 * time.Second
	// recheckEvery is how often a follower asks etcd for its revision. A
	// watch does not tell that etcd cannot be reached, or that it was wiped
	// and waits for a revision that is far away.
	recheckEvery = 10 * time.Second

	shortestBackoff = 100 * time.Millisecond
	longestBackoff  = 5 * time.Second
)

var (
	errWatchEnded = errors.New("etcd: the watch ended")
	errRewound    = errors.New("etcd: the store went back to an earlier revision")
)

// follower keeps a table equal to what etcd says.
type follower struct {
	client  *clientv3.Client
	log     *slog.Logger
	keys    keys
	table   *table
	recheck time.Duration
}

// run reads all slots and then every change, and calls updated after each step
// that it made, with listed after the first. It returns only why it cannot go
// on: what it must do then is start again.
func (f *follower) run(ctx context.Context, updated func(ctx context.Context, listed bool) error) error {
	// Ends the watch.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	revision, err := f.list(ctx)
	if err != nil {
		return err
	}
	if err := updated(ctx, true); err != nil {
		return err
	}
	watch := f.client.Watch(clientv3.WithRequireLeader(ctx), f.keys.slots(),
		clientv3.WithPrefix(), clientv3.WithRev(revision+1), clientv3.WithProgressNotify())
	recheck := time.NewTicker(f.recheck)
	defer recheck.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case answer, open := <-watch:
			if !open {
				return errWatchEnded
			}
			if err := answer.Err(); err != nil {
				return fmt.Errorf("etcd: watching the slots: %w", err)
			}
			f.apply(answer)
			if err := updated(ctx, false); err != nil {
				return err
			}
		case <-recheck.C:
			if err := f.checkRevision(ctx); err != nil {
				return err
			}
		}
	}
}

// list brings the table up to date and returns the revision that it has then.
// Slots change in place, so nobody ever sees an empty table.
func (f *follower) list(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := f.client.Get(ctx, f.keys.slots(), clientv3.WithPrefix())
	if err != nil {
		return 0, fmt.Errorf("etcd: listing the slots: %w", err)
	}
	revision := answer.Header.Revision
	if revision < f.table.revision {
		f.log.Error("etcd went back to an earlier revision, as after a restore; its owners and epochs replace the known ones",
			"revision", revision, "known", f.table.revision)
		f.table.rewind()
	}
	var listed [ownership.Slots]bool
	for _, kv := range answer.Kvs {
		slot, err := f.keys.parseSlot(string(kv.Key))
		if err != nil {
			f.log.Warn("a key in etcd was ignored", "err", err)
			continue
		}
		listed[slot] = true
		f.table.put(slot, f.owner(kv.Value), clientv3.LeaseID(kv.Lease), kv.ModRevision)
	}
	for slot, exists := range listed {
		if !exists {
			f.table.remove(ownership.Slot(slot), revision)
		}
	}
	f.table.see(revision)
	return revision, nil
}

func (f *follower) apply(answer clientv3.WatchResponse) {
	for _, event := range answer.Events {
		slot, err := f.keys.parseSlot(string(event.Kv.Key))
		if err != nil {
			f.log.Warn("a key in etcd was ignored", "err", err)
			continue
		}
		if event.Type == clientv3.EventTypeDelete {
			f.table.remove(slot, event.Kv.ModRevision)
			continue
		}
		f.table.put(slot, f.owner(event.Kv.Value), clientv3.LeaseID(event.Kv.Lease), event.Kv.ModRevision)
	}
	f.table.see(answer.Header.Revision)
}

// owner is nil if the value cannot be read.
func (f *follower) owner(value []byte) *member {
	m, err := decodeMember(value)
	if err != nil {
		f.log.Warn("a key in etcd was ignored", "err", err)
		return nil
	}
	return &m
}

func (f *follower) checkRevision(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := f.client.Get(ctx, f.keys.slots(), clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("etcd: reading the revision: %w", err)
	}
	if answer.Header.Revision < f.table.revision {
		return errRewound
	}
	return nil
}

// backoff is the pause before the next try. It doubles up to longestBackoff; chance
// takes up to half of it, so that those who failed together come back apart.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// wait returns early when ctx ends.
func (b *backoff) wait(ctx context.Context) {
	b.next = min(max(2*b.next, shortestBackoff), longestBackoff)
	timer := time.NewTimer(b.next - rand.N(b.next/2))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
