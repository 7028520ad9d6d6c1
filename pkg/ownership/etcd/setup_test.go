package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/windlass-dev/windlass/internal/local/embeddedetcd"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// store is the etcd of all tests.
var store *clientv3.Client

var prefixes sync.Map

// prefix is a test's own prefix in the store, and another one when the test runs
// again.
func prefix(t *testing.T) string {
	p, _ := prefixes.LoadOrStore(t, fmt.Sprintf("/%s/%p", t.Name(), t))
	return p.(string)
}

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ownership")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		server, err := embeddedetcd.Start(context.Background(), embeddedetcd.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			panic(err)
		}
		store = server.Client()
		code := m.Run()
		server.Close()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		return code
	}())
}

var errCut = errors.New("the line to etcd is cut")

// line is a connection to etcd that a test can cut and mend.
type line struct {
	mu  sync.Mutex
	to  *clientv3.Client
	up  context.Context
	cut context.CancelFunc
	// beforeWatch, beforeTxn and beforeRevoke are called before these requests, if not
	// nil.
	beforeWatch, beforeTxn, beforeRevoke func()
}

func newLine(t *testing.T) *line {
	l := &line{}
	l.mend(store)
	t.Cleanup(l.down)
	return l
}

// mend connects to an etcd.
func (l *line) mend(to *clientv3.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
	l.up, l.cut = context.WithCancel(context.Background())
}

// reroute leads new requests to another etcd; nothing that is open ends.
func (l *line) reroute(to *clientv3.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = to
}

// down ends everything that is open and fails every request.
func (l *line) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut()
}

// client is an etcd client on the line.
func (l *line) client() *clientv3.Client {
	c := clientv3.NewCtxClient(context.Background())
	c.KV, c.Lease, c.Watcher = lineKV{nil, l}, lineLease{nil, l}, lineWatcher{nil, l}
	return c
}

// bound is where to send a request, and a context that ends with the line.
func (l *line) bound(ctx context.Context) (*clientv3.Client, context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up.Err() != nil {
		return nil, nil, errCut
	}
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(l.up, cancel)
	return l.to, ctx, nil
}

type lineKV struct {
	clientv3.KV
	line *line
}

func (kv lineKV) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	to, ctx, err := kv.line.bound(ctx)
	if err != nil {
		return nil, err
	}
	return to.Get(ctx, key, opts...)
}

func (kv lineKV) Put(ctx context.Context, key, value string, opts ...clientv3.OpOption) (*clientv3.PutResponse, error) {
	to, ctx, err := kv.line.bound(ctx)
	if err != nil {
		return nil, err
	}
	return to.Put(ctx, key, value, opts...)
}

func (kv lineKV) Txn(ctx context.Context) clientv3.Txn {
	to, ctx, err := kv.line.bound(ctx)
	if err != nil {
		return cutTxn{}
	}
	if kv.line.beforeTxn != nil {
		kv.line.beforeTxn()
	}
	return to.Txn(ctx)
}

type cutTxn struct{}

func (t cutTxn) If(...clientv3.Cmp) clientv3.Txn        { return t }
func (t cutTxn) Then(...clientv3.Op) clientv3.Txn       { return t }
func (t cutTxn) Else(...clientv3.Op) clientv3.Txn       { return t }
func (t cutTxn) Commit() (*clientv3.TxnResponse, error) { return nil, errCut }

type lineLease struct {
	clientv3.Lease
	line *line
}

func (l lineLease) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	to, ctx, err := l.line.bound(ctx)
	if err != nil {
		return nil, err
	}
	return to.Grant(ctx, ttl)
}

func (l lineLease) TimeToLive(ctx context.Context, id clientv3.LeaseID, opts ...clientv3.LeaseOption) (*clientv3.LeaseTimeToLiveResponse, error) {
	to, ctx, err := l.line.bound(ctx)
	if err != nil {
		return nil, err
	}
	return to.TimeToLive(ctx, id, opts...)
}

func (l lineLease) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	to, ctx, err := l.line.bound(ctx)
	if err != nil {
		return nil, err
	}
	return to.KeepAliveOnce(ctx, id)
}

func (l lineLease) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	to, ctx, err := l.line.bound(ctx)
	if err != nil {
		return nil, err
	}
	if l.line.beforeRevoke != nil {
		l.line.beforeRevoke()
	}
	return to.Revoke(ctx, id)
}

type lineWatcher struct {
	clientv3.Watcher
	line *line
}

func (w lineWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	to, ctx, err := w.line.bound(ctx)
	if err != nil {
		ended := make(chan clientv3.WatchResponse)
		close(ended)
		return ended
	}
	if w.line.beforeWatch != nil {
		w.line.beforeWatch()
	}
	return to.Watch(ctx, key, opts...)
}

// journal is a logger that remembers what it was told.
type journal struct {
	slog.Handler
	mu       sync.Mutex
	messages []string
}

func newJournal() *journal { return &journal{Handler: slog.DiscardHandler} }

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }

func (j *journal) Handle(_ context.Context, r slog.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.messages = append(j.messages, r.Message)
	return nil
}

// count tells how many messages hold a text.
func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, m := range j.messages {
		if strings.Contains(m, text) {
			n++
		}
	}
	return n
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for !so() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("it never happened that %s", what)
		}
	}
}

// running is a Coordinator or Directory that runs, on a line of its own.
type running struct {
	line    *line
	journal *journal
	end     func()
}

// run runs something until the test or end ends it.
func run(t *testing.T, body func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- body(ctx) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	t.Cleanup(end)
	return end
}

type runningCoordinator struct {
	*Coordinator
	running
}

// keeper runs a Coordinator whose lease does not end by itself during a test.
func runCoordinator(t *testing.T, id string) runningCoordinator {
	return runCoordinatorWithTTL(t, id, time.Minute)
}

func runCoordinatorWithTTL(t *testing.T, id string, ttl time.Duration) runningCoordinator {
	t.Helper()
	return runCoordinatorWith(t, Config{ID: id, TTL: ttl})
}

// sharing runs Keepers that start together, and waits until they have shared all
// slots.
func sharing(t *testing.T, ttl time.Duration, ids ...string) []runningCoordinator {
	t.Helper()
	var coordinators []runningCoordinator
	for _, id := range ids {
		coordinators = append(coordinators, runCoordinatorWith(t, Config{ID: id, TTL: ttl, Settle: 200 * time.Millisecond}))
	}
	eventually(t, "they hold all slots, and each some", func() bool {
		held := 0
		for _, k := range coordinators {
			some := k.holding()
			if some == 0 {
				return false
			}
			held += some
		}
		return held == ownership.Slots
	})
	return coordinators
}

func runCoordinatorWith(t *testing.T, config Config) runningCoordinator {
	t.Helper()
	l, j := newLine(t), newJournal()
	config.Addr, config.Prefix = config.ID+":7000", prefix(t)
	k, err := NewCoordinator(config, Deps{Client: l.client(), Log: slog.New(j)})
	if err != nil {
		t.Fatal(err)
	}
	return runningCoordinator{k, running{l, j, run(t, k.Run)}}
}

// epochs lists the epochs of all slots, 0 for those that are not held.
func (k runningCoordinator) epochs() []uint64 {
	out := make([]uint64, ownership.Slots)
	for i := range out {
		out[i], _ = k.Epoch(ownership.Slot(i))
	}
	return out
}

// holding is how many slots are held.
func (k runningCoordinator) holding() int {
	return len(slices.DeleteFunc(k.epochs(), func(epoch uint64) bool { return epoch == 0 }))
}

func (k runningCoordinator) holdsAll() bool { return k.holding() == ownership.Slots }

func (k runningCoordinator) holdsNone() bool { return k.holding() == 0 }

type runningDirectory struct {
	*Directory
	running
}

// directory runs a Directory that compares its keys with etcd's all the time.
func directory(t *testing.T) runningDirectory {
	t.Helper()
	l := newLine(t)
	return directoryOn(t, l, 5*time.Millisecond)
}

func directoryOn(t *testing.T, l *line, recheck time.Duration) runningDirectory {
	t.Helper()
	j := newJournal()
	d, err := NewDirectory(prefix(t), Deps{Client: l.client(), Log: slog.New(j)})
	if err != nil {
		t.Fatal(err)
	}
	d.follower.recheck = recheck
	return runningDirectory{d, running{l, j, run(t, d.Run)}}
}

// agrees tells whether the directory names the keeper as the owner of every
// slot, in the epochs that the keeper knows.
func (d runningDirectory) agrees(k runningCoordinator) bool {
	for i, epoch := range k.epochs() {
		owner, ok := d.Owner(ownership.Slot(i))
		if !ok || owner != (ownership.Owner{ID: k.config.ID, Addr: k.config.Addr, Epoch: epoch}) {
			return false
		}
	}
	return true
}

// allRose tells whether each epoch is above the one before.
func allRose(before, after []uint64) bool {
	for i := range before {
		if after[i] <= before[i] {
			return false
		}
	}
	return true
}

// leaseOf is the lease of a member's key.
func leaseOf(t *testing.T, id string) clientv3.LeaseID {
	t.Helper()
	answer, err := store.Get(t.Context(), keys(prefix(t)).member(id))
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Kvs) != 1 {
		t.Fatalf("%s has %d keys as a member, want 1", id, len(answer.Kvs))
	}
	return clientv3.LeaseID(answer.Kvs[0].Lease)
}
