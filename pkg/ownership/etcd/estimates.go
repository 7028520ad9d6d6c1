package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/backoff"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/autoscaler/estimate"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

const (
	// writeInterval is the minimum time between two writes of a slot's record.
	writeInterval = 10 * time.Second
	// relistEvery is how often all records are read again: a watch does not show that etcd was
	// wiped.
	relistEvery = 5 * time.Minute
	// listTimeout bounds a listing of all records, which can have 64 MiB, more than answers to
	// other requests.
	listTimeout = 10 * time.Second
)

// EstimateStore keeps the estimates of functions: each owner writes one record a slot, and
// all read all records, so that the next owner of a slot, and the owner of a new revision,
// begins with them. Only the quality of the first decisions depends on it. Restore is for
// concurrent use.
type EstimateStore struct {
	client  *clientv3.Client
	log     *slog.Logger
	keys    keys
	ready   chan struct{}
	failing bool // the last write failed, which was logged

	mu sync.RWMutex // covers everything below
	// slots are the records in etcd.
	slots map[ownership.Slot]estimate.Record
	// functions are the same units by the UIDs of their functions.
	functions map[string][]estimate.Unit
	// unreadable are the slots whose record was logged as unreadable.
	unreadable map[ownership.Slot]bool
}

// NewEstimateStore makes an EstimateStore of the slots under the prefix of the Coordinators'
// Config. It starts nothing.
func NewEstimateStore(prefix string, deps Deps) (*EstimateStore, error) {
	if err := validatePrefix(prefix); err != nil {
		return nil, err
	}
	if err := deps.validate(); err != nil {
		return nil, err
	}
	m := &EstimateStore{client: deps.Client, log: deps.Log, keys: keys(prefix), ready: make(chan struct{})}
	m.replaceAll(nil)
	return m, nil
}

// Ready is closed once the records have been read for the first time, or etcd has said that its
// user may not read them. A scheduler must claim no slot before: the estimates of its functions
// would start from zero, and WriteUntil would write that. It could claim none anyway while etcd
// does not answer.
func (m *EstimateStore) Ready() <-chan struct{} { return m.ready }

// Restore returns the means of a unit, or else of other revisions of its function.
func (m *EstimateStore) Restore(unit *v1alpha1.Function) estimate.Means {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return estimate.Restore(m.functions[unit.FunctionUID()], string(unit.UID))
}

// Run follows the records until ctx ends, and then returns nil.
func (m *EstimateStore) Run(ctx context.Context) error {
	retry := newRetry()
	for ctx.Err() == nil {
		err := m.watchRecords(ctx, retry)
		if err == nil || ctx.Err() != nil {
			continue
		}
		m.log.Warn("the watch of estimates was interrupted; the known ones still count", "err", err)
		sleep.For(ctx, backoff.Jitter(retry.Next()))
	}
	return nil
}

// watchRecords reads all records and watches them for relistEvery.
func (m *EstimateStore) watchRecords(ctx context.Context, retry *backoff.Backoff) error {
	ctx, cancel := context.WithTimeout(ctx, relistEvery)
	defer cancel()
	list, stop := context.WithTimeout(ctx, listTimeout)
	answer, err := m.client.Get(list, m.keys.records(), clientv3.WithPrefix())
	stop()
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		closeOnce(m.ready)
	}
	if err != nil {
		return fmt.Errorf("etcd: listing the records: %w", err)
	}
	m.replaceAll(answer.Kvs)
	closeOnce(m.ready)
	retry.Reset()
	watch := m.client.Watch(clientv3.WithRequireLeader(ctx), m.keys.records(), clientv3.WithPrefix(), clientv3.WithRev(answer.Header.Revision+1))
	for answer := range watch {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("etcd: watching the records: %w", err)
		}
		m.mu.Lock()
		for _, event := range answer.Events {
			m.applyRecord(event.Kv)
		}
		m.mu.Unlock()
	}
	if ctx.Err() == nil {
		return errWatchEnded
	}
	return nil
}

// replaceAll replaces all records.
func (m *EstimateStore) replaceAll(kvs []*mvccpb.KeyValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slots = make(map[ownership.Slot]estimate.Record)
	m.functions = make(map[string][]estimate.Unit)
	if m.unreadable == nil {
		m.unreadable = make(map[ownership.Slot]bool)
	}
	for _, kv := range kvs {
		m.applyRecord(kv)
	}
}

// applyRecord applies the present state of one key; without a value it is deleted. An
// unreadable record counts as none, so that its slot's owner writes another.
func (m *EstimateStore) applyRecord(kv *mvccpb.KeyValue) {
	slot, err := m.keys.parseRecord(string(kv.Key))
	if err != nil {
		m.log.Warn("a key in etcd was ignored", "err", err)
		return
	}
	var record estimate.Record
	if len(kv.Value) > 0 {
		record, err = estimate.ParseRecord(kv.Value)
	}
	if err != nil && !m.unreadable[slot] {
		m.log.Warn("estimates of functions cannot be read; they start from zero", "key", string(kv.Key), "err", err)
	}
	m.unreadable[slot] = err != nil
	for _, u := range m.slots[slot] {
		left := slices.DeleteFunc(m.functions[u.Function], func(other estimate.Unit) bool { return other.UID == u.UID })
		if m.functions[u.Function] = left; len(left) == 0 {
			delete(m.functions, u.Function)
		}
	}
	record = slices.DeleteFunc(record, func(u estimate.Unit) bool { return ownership.SlotOf(u.UID, 0) != slot })
	if m.slots[slot] = record; len(record) == 0 {
		delete(m.slots, slot)
	}
	for _, u := range record {
		m.functions[u.Function] = append(m.functions[u.Function], u)
	}
}

// WriteUntil writes the estimates of the units in the slots that holder holds, until ctx ends,
// and then once more. estimates returns all units that this scheduler serves and has estimates
// for.
func (m *EstimateStore) WriteUntil(ctx context.Context, holder *Coordinator, estimates func() []estimate.Unit) error {
	ticker := time.NewTicker(writeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), handOverTimeout)
			defer cancel()
			m.write(ctx, m.due(holder.Epoch, estimates))
			return nil
		case <-ticker.C:
			m.write(ctx, m.due(holder.Epoch, estimates))
		}
	}
}

// pendingWrite is a record that the owner of a slot has to write.
type pendingWrite struct {
	slot   ownership.Slot
	epoch  uint64
	record estimate.Record
}

// due returns the records that have changed enough. It reads the epochs first: estimates of a
// later term must not be written in the name of this one.
func (m *EstimateStore) due(epochOf func(ownership.Slot) (uint64, bool), estimates func() []estimate.Unit) []pendingWrite {
	epochs := make(map[ownership.Slot]uint64)
	for slot := range ownership.Slot(ownership.Slots) {
		if epoch, held := epochOf(slot); held {
			epochs[slot] = epoch
		}
	}
	units := make(map[ownership.Slot][]estimate.Unit)
	for _, u := range estimates() {
		slot := ownership.SlotOf(u.UID, 0)
		units[slot] = append(units[slot], u)
	}
	var due []pendingWrite
	m.mu.RLock()
	defer m.mu.RUnlock()
	for slot, epoch := range epochs {
		record := estimate.RecordOf(units[slot])
		if record.Differs(m.slots[slot]) || m.unreadable[slot] {
			due = append(due, pendingWrite{slot, epoch, record})
		}
	}
	return due
}

// write writes records one after the other until one fails.
func (m *EstimateStore) write(ctx context.Context, notes []pendingWrite) {
	for _, n := range notes {
		if err := m.writeOne(ctx, n); err != nil {
			if !m.failing && !errors.Is(err, context.Canceled) {
				m.failing = true
				m.log.Warn("estimates of functions cannot be stored", "err", err)
			}
			return
		}
		m.failing = false
	}
}

// writeOne writes a record, unless the slot has another owner by now, which writes its own.
func (m *EstimateStore) writeOne(ctx context.Context, n pendingWrite) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	change := clientv3.OpDelete(m.keys.record(n.slot))
	if len(n.record) > 0 {
		change = clientv3.OpPut(m.keys.record(n.slot), string(n.record.Encode()))
	}
	owned := clientv3.Compare(clientv3.ModRevision(m.keys.slot(n.slot)), "=", int64(n.epoch))
	if _, err := m.client.Txn(ctx).If(owned).Then(change).Commit(); err != nil {
		return fmt.Errorf("etcd: writing a record: %w", err)
	}
	return nil
}
