package main

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/internal/local/embeddedetcd"
	"github.com/windlass-dev/windlass/test/lab"
)

// deafened is an etcd whose watches hear nothing while it is deaf, as those that have seen later revisions.
type deafened struct {
	*clientv3.Client
	deaf atomic.Bool
}

func (d *deafened) Watch(ctx context.Context, key string, options ...clientv3.OpOption) clientv3.WatchChan {
	if d.deaf.Load() {
		silent := make(chan clientv3.WatchResponse)
		go func() { <-ctx.Done(); close(silent) }()
		return silent
	}
	return d.Client.Watch(ctx, key, options...)
}

func TestMovesAreCountedUnlessTheWatchIsDeaf(t *testing.T) {
	server, err := embeddedetcd.Start(t.Context(), embeddedetcd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	etcd := &deafened{Client: server.Client()}
	etcd.deaf.Store(true)
	w := &epochWatch{etcd: etcd, last: make(map[sight]uint64)}
	give := func(key string) {
		if _, err := etcd.Put(t.Context(), lab.Prefix+key, "{}"); err != nil {
			t.Fatal(err)
		}
	}
	follow := func() {
		if err := w.follow(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.watch.stop)
	}
	follow()
	give("/slots/0007")
	hurried, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if moves, err := w.moves(hurried); err == nil || !strings.Contains(err.Error(), "does not see") {
		t.Errorf("a watch that is deaf saw %d moves, %v", moves, err)
	}
	etcd.deaf.Store(false)
	follow()
	give("/slots/0007")
	give("/schedulers/a")
	give("/slots/0008")
	if moves, err := w.moves(t.Context()); err != nil || moves != 2 {
		t.Errorf("it saw %d moves, %v; want two", moves, err)
	}
}
