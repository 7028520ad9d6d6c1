package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

const (
	// requestTimeout bounds each request to etcd.
	requestTimeout = 3 * time.Second
	// recheckEvery is how often a follower compares its state with etcd. A watch does not show
	// that etcd cannot be reached, that it lags, or that etcd was wiped or restored and the
	// watch waits for a revision that is far away.
	recheckEvery = 4 * time.Second
)

var (
	errWatchEnded = errors.New("etcd: the watch ended")
	errRewound    = errors.New("etcd: the store has another history than before")
	errOutdated   = errors.New("etcd: the store no longer has what was read from it")
)

// follower reads the keys under a prefix.
type follower struct {
	client  *clientv3.Client
	log     *slog.Logger
	keys    keys
	recheck time.Duration
}

// storeUpdate is a listing, changes, or the confirmation that nothing has changed; none of
// these if the time to wait is over.
type storeUpdate struct {
	listing   *coordinator.Listing
	entries   []coordinator.Entry
	confirmed bool
}

// following is a follower that has read all keys and watches them.
type following struct {
	*follower
	watch   clientv3.WatchChan
	recheck *time.Ticker
	known   coordinator.Comparison
}

func lastWriteOf(kv *mvccpb.KeyValue) coordinator.LastWrite {
	return coordinator.LastWrite{Key: string(kv.Key), Revision: kv.ModRevision, Lease: coordinator.Lease(kv.Lease), Value: string(kv.Value)}
}

// start lists all keys and watches them from there until ctx ends.
func (f *follower) start(ctx context.Context) (*following, coordinator.Listing, error) {
	w := &following{follower: f}
	listing, err := w.list(ctx)
	if err != nil {
		return nil, coordinator.Listing{}, err
	}
	w.watch = f.client.Watch(clientv3.WithRequireLeader(ctx), f.keys.prefix(),
		clientv3.WithPrefix(), clientv3.WithRev(listing.Revision+1), clientv3.WithProgressNotify())
	w.recheck = time.NewTicker(f.recheck)
	return w, listing, nil
}

// stop must be called after start has succeeded and ctx has ended.
func (w *following) stop() { w.recheck.Stop() }

// wait waits for an update, or until a time unless that is zero. After an error the caller
// must start again.
func (w *following) wait(ctx context.Context, until time.Time) (storeUpdate, error) {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return storeUpdate{}, ctx.Err()
	case answer, open := <-w.watch:
		if !open {
			return storeUpdate{}, errWatchEnded
		}
		if err := answer.Err(); err != nil {
			return storeUpdate{}, fmt.Errorf("etcd: watching the keys: %w", err)
		}
		return storeUpdate{entries: w.changes(answer)}, nil
	case <-w.recheck.C:
		return w.audit(ctx)
	case <-due:
		return storeUpdate{}, nil
	}
}

// read reads keys.
func (w *following) read(ctx context.Context, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	answer, err := w.client.Get(ctx, w.keys.prefix(), append(options, clientv3.WithPrefix())...)
	if err != nil {
		return nil, fmt.Errorf("etcd: reading the keys: %w", err)
	}
	if w.known.Saw(answer.Header.Revision) {
		return nil, errRewound
	}
	return answer, nil
}

func (w *following) list(ctx context.Context) (coordinator.Listing, error) {
	answer, err := w.read(ctx)
	if err != nil {
		return coordinator.Listing{}, err
	}
	listing := coordinator.Listing{Revision: answer.Header.Revision}
	all := make([]coordinator.LastWrite, 0, len(answer.Kvs))
	for _, kv := range answer.Kvs {
		all = append(all, lastWriteOf(kv))
		if entry, ok := w.entry(kv); ok {
			listing.Entries = append(listing.Entries, entry)
		}
	}
	w.known.Listed(all)
	return listing, nil
}

func (w *following) changes(answer clientv3.WatchResponse) []coordinator.Entry {
	w.known.Saw(answer.Header.Revision)
	entries := make([]coordinator.Entry, 0, len(answer.Events))
	for _, event := range answer.Events {
		name, revision := string(event.Kv.Key), event.Kv.ModRevision
		if event.Type == clientv3.EventTypeDelete {
			w.known.Deleted(name)
			if key, err := w.keys.parse(name); err == nil {
				entries = append(entries, coordinator.Entry{Key: key, Revision: revision, Absent: true})
			}
			continue
		}
		w.known.Changed(lastWriteOf(event.Kv))
		if entry, ok := w.entry(event.Kv); ok {
			entries = append(entries, entry)
		}
	}
	return entries
}

func (f *follower) entry(kv *mvccpb.KeyValue) (coordinator.Entry, bool) {
	entry, known, err := f.keys.entry(kv)
	if err != nil {
		f.log.Warn("a key in etcd was ignored", "err", err)
	}
	return entry, known
}

// audit compares the number of keys and the last write with the known ones, and lists all keys
// if they differ, or if it is time to. If the watch was merely late, the listing does no harm.
func (w *following) audit(ctx context.Context) (storeUpdate, error) {
	if !w.known.Lists() {
		if same, err := w.isUnchanged(ctx); same || err != nil {
			return storeUpdate{confirmed: same}, err
		}
	}
	listing, err := w.list(ctx)
	if err != nil {
		return storeUpdate{}, err
	}
	return storeUpdate{listing: &listing}, nil
}

func (w *following) isUnchanged(ctx context.Context) (same bool, err error) {
	answer, err := w.read(ctx, clientv3.WithLastRev()...)
	if err != nil {
		return false, err
	}
	var last []coordinator.LastWrite
	for _, kv := range answer.Kvs {
		last = append(last, lastWriteOf(kv))
	}
	return w.known.Same(int(answer.Count), last...), nil
}

// newRetry is the pause after etcd could not be reached.
func newRetry() *backoff.Backoff {
	return &backoff.Backoff{First: 100 * time.Millisecond, Last: 2 * time.Second}
}
