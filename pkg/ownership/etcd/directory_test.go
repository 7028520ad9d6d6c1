package etcd

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/internal/local/embeddedetcd"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

func newSilentLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func wantMention(t *testing.T, err error, field string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), field) {
		t.Errorf("the error is %v, want it to name %s", err, field)
	}
}

// emptyStore starts another etcd. Its users must be started later, so that
// it ends before.
func emptyStore(t *testing.T) *clientv3.Client {
	t.Helper()
	server, err := embeddedetcd.Start(t.Context(), embeddedetcd.Config{Dir: t.TempDir(), Log: newSilentLog()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.Client()
}

func TestADirectoryNamesOwners(t *testing.T) {
	d := directory(t)
	<-d.Ready()
	if owner, ok := d.Owner(7); ok {
		t.Errorf("it names %v as an owner before there is one", owner)
	}
	k := runCoordinator(t, "a")
	<-k.Ready()
	eventually(t, "it names the keeper", func() bool { return d.agrees(k) })
	if owner, ok := d.Owner(ownership.Slots); ok {
		t.Errorf("it names %v as the owner of a slot that does not exist", owner)
	}

	late := directory(t)
	<-late.Ready()
	if !late.agrees(k) {
		t.Error("one that starts later is ready before it knows every owner")
	}
}

func TestADirectoryNamesTheLastOwnerUntilThereIsAnother(t *testing.T) {
	a := runCoordinator(t, "a")
	<-a.Ready()
	d := directory(t)
	<-d.Ready()
	a.end()
	eventually(t, "it reads that all keys are gone", func() bool {
		answer, err := store.Get(t.Context(), prefix(t), clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && answer.Count == 0
	})
	b := runCoordinator(t, "b")
	eventually(t, "it names b", func() bool {
		for i := range ownership.Slots {
			if _, ok := d.Owner(ownership.Slot(i)); !ok {
				t.Fatal("it named nobody in between")
			}
		}
		return d.agrees(b)
	})
}

func TestADirectoryThatIsCutOffKeepsWhatItKnows(t *testing.T) {
	a := runCoordinator(t, "a")
	<-a.Ready()
	d := directory(t)
	<-d.Ready()
	d.line.down()
	eventually(t, "it notices, and tries more than once", func() bool { return d.journal.count("interrupted") > 1 })
	if !d.agrees(a) {
		t.Error("it forgot owners")
	}
	b := runCoordinator(t, "b")
	<-b.Ready()
	a.end()
	eventually(t, "b holds every slot", b.holdsAll)
	d.line.mend(store)
	eventually(t, "it learns of b", func() bool { return d.agrees(b) })
}

func TestADirectoryWaitsForEtcd(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	l := newLine(t)
	l.down()
	d := directoryOn(t, l, time.Hour)
	eventually(t, "it tries more than once", func() bool { return d.journal.count("interrupted") > 1 })
	select {
	case <-d.Ready():
		t.Error("it is ready without etcd")
	default:
	}
	l.mend(store)
	<-d.Ready()
	if !d.agrees(k) {
		t.Error("it is ready before it knows every owner")
	}
}

func TestADirectoryListsAgainWhatWasCompacted(t *testing.T) {
	l := newLine(t)
	slots := keys(prefix(t))
	watches := 0
	l.beforeWatch = func() {
		if watches++; watches > 1 {
			return
		}
		// What it missed is gone when the watch begins.
		for _, value := range []string{`{"id":"x","addr":"x:1"}`, `{"id":"y","addr":"y:1"}`} {
			put, err := store.Put(t.Context(), slots.slot(7), value)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := store.Compact(t.Context(), put.Header.Revision); err != nil {
				t.Error(err)
			}
		}
	}
	d := directoryOn(t, l, time.Hour)
	eventually(t, "it names the owner", func() bool {
		owner, _ := d.Owner(7)
		return owner.ID == "y"
	})
	if d.journal.count("interrupted") == 0 {
		t.Error("its watch was not interrupted, so nothing was tested")
	}
}

func TestADirectoryNoticesThatEtcdIsWiped(t *testing.T) {
	empty := emptyStore(t)
	k := runCoordinator(t, "a")
	<-k.Ready()
	d := directory(t)
	<-d.Ready()
	known, _ := d.Owner(7)

	// Its watch stays open, as one does that waits for a later revision.
	put, err := empty.Put(t.Context(), keys(prefix(t)).slot(7), `{"id":"b","addr":"b:7000"}`)
	if err != nil {
		t.Fatal(err)
	}
	if uint64(put.Header.Revision) >= known.Epoch {
		t.Fatalf("the new etcd is at revision %d, want one before %d", put.Header.Revision, known.Epoch)
	}
	d.line.reroute(empty)
	eventually(t, "it names the new owner", func() bool {
		owner, _ := d.Owner(7)
		return owner == ownership.Owner{ID: "b", Addr: "b:7000", Epoch: uint64(put.Header.Revision)}
	})
	if owner, ok := d.Owner(8); !ok || owner.ID != "a" {
		t.Errorf("slot 8 has owner %v, want the last known one", owner)
	}
}

// restore makes two etcds: one with four writes, and one with another history of writes.
func restore(t *testing.T, other []write) (before, after *clientv3.Client) {
	t.Helper()
	before, after = emptyStore(t), emptyStore(t)
	writeAll(t, before, write{7, "a"}, write{8, "a"}, write{9, "a"}, write{7, "b"})
	writeAll(t, after, other...)
	return before, after
}

// write is the write of a slot's owner.
type write struct {
	slot  ownership.Slot
	owner string
}

// writeAll fills an empty etcd, whose first write has revision 2.
func writeAll(t *testing.T, to *clientv3.Client, writes ...write) {
	t.Helper()
	for i, w := range writes {
		value := encode(coordinator.Value{ID: w.owner, Addr: w.owner + ":7000"})
		put, err := to.Put(t.Context(), keys(prefix(t)).slot(w.slot), value)
		if err != nil {
			t.Fatal(err)
		}
		if want := int64(i + 2); put.Header.Revision != want {
			t.Fatalf("write %d has revision %d, want %d", i, put.Header.Revision, want)
		}
	}
}

// restores are histories that have as many keys as the first etcd of restore. Their last write
// is one of its writes, or has the revision of its last one.
var restores = map[string]struct {
	writes []write
	// owners of the slots 7 and 8.
	seven, eight ownership.Owner
	// noticed is the comparison that notices it.
	noticed int
}{
	"the last write is missing": {
		[]write{{7, "a"}, {8, "a"}, {9, "a"}},
		ownership.Owner{ID: "a", Addr: "a:7000", Epoch: 2}, ownership.Owner{ID: "a", Addr: "a:7000", Epoch: 3}, 1,
	},
	"the last write is another one": {
		[]write{{7, "a"}, {8, "a"}, {9, "a"}, {7, "c"}},
		ownership.Owner{ID: "c", Addr: "c:7000", Epoch: 5}, ownership.Owner{ID: "a", Addr: "a:7000", Epoch: 3}, 1,
	},
	"an earlier write is another one": {
		[]write{{7, "a"}, {8, "c"}, {9, "a"}, {7, "b"}},
		ownership.Owner{ID: "b", Addr: "b:7000", Epoch: 5}, ownership.Owner{ID: "c", Addr: "c:7000", Epoch: 3}, coordinator.RelistAfter,
	},
}

func TestADirectoryNoticesThatEtcdIsRestoredWithAsManyKeys(t *testing.T) {
	for name, tt := range restores {
		t.Run(name, func(t *testing.T) {
			before, after := restore(t, tt.writes)
			l := newLine(t)
			l.reroute(before)
			d := directoryOn(t, l, 5*time.Millisecond)
			<-d.Ready()
			if owner, _ := d.Owner(7); owner.ID != "b" {
				t.Fatalf("slot 7 has owner %v before, want b", owner)
			}
			// Its watch stays open, as one does that waits for a later revision.
			l.reroute(after)
			eventually(t, "it names the owners that the restored etcd has", func() bool {
				seven, _ := d.Owner(7)
				eight, _ := d.Owner(8)
				return seven == tt.seven && eight == tt.eight
			})
		})
	}
}

func TestAComparisonNoticesThatEtcdIsRestored(t *testing.T) {
	for name, tt := range restores {
		t.Run(name, func(t *testing.T) {
			before, after := restore(t, tt.writes)
			l := newLine(t)
			l.reroute(before)
			w := followingOn(t, l)
			l.reroute(after)
			for i := 1; ; i++ {
				got, err := w.audit(t.Context())
				if err != nil && !errors.Is(err, errRewound) {
					t.Fatal(err)
				}
				if noticed := !got.confirmed; noticed != (i >= tt.noticed) {
					t.Fatalf("comparison %d notices it: %v, want number %d to", i, noticed, tt.noticed)
				}
				if !got.confirmed {
					return
				}
			}
		})
	}
}

// followingOn follows the keys without comparing them by itself.
func followingOn(t *testing.T, l *line) *following {
	t.Helper()
	f := follower{client: l.client(), log: newSilentLog(), keys: keys(prefix(t)), recheck: time.Hour}
	w, _, err := f.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.stop)
	return w
}

func awaitChanges(t *testing.T, w *following, n int) {
	t.Helper()
	for n > 0 {
		got, err := w.wait(t.Context(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		n -= len(got.entries)
	}
}

func TestAComparisonKnowsTheRevisionsOfTheWatch(t *testing.T) {
	before, after := emptyStore(t), emptyStore(t)
	writeAll(t, after, write{7, "a"}, write{8, "a"})
	writeAll(t, before, write{7, "a"}, write{8, "a"})
	l := newLine(t)
	l.reroute(before)
	w := followingOn(t, l)
	other := keys(prefix(t)).slot(9)
	for _, change := range []clientv3.Op{clientv3.OpPut(other, "nobody"), clientv3.OpDelete(other)} {
		if _, err := before.Do(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	awaitChanges(t, w, 2)
	l.reroute(after)
	if got, err := w.audit(t.Context()); !errors.Is(err, errRewound) {
		t.Errorf("the comparison returned %+v and %v, want the end of following", got, err)
	}
}

func TestAComparisonThatOvertakesTheWatchEndsNothing(t *testing.T) {
	to := emptyStore(t)
	l := newLine(t)
	l.reroute(to)
	w := followingOn(t, l)
	writeAll(t, to, write{7, "a"}, write{7, "b"})
	got, err := w.audit(t.Context())
	if err != nil || got.listing == nil || len(got.listing.Entries) != 1 {
		t.Fatalf("the comparison returned %+v and %v, want a listing", got, err)
	}
	awaitChanges(t, w, 2)
	if got, err := w.audit(t.Context()); err != nil || !got.confirmed {
		t.Errorf("after the late changes it returned %+v and %v, want no change", got, err)
	}
}

func TestADirectoryIgnoresWhatItCannotRead(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	d := directory(t)
	<-d.Ready()
	for _, value := range []string{"not an owner", `{"id":"b"}`, `{"addr":"b:7000"}`} {
		if _, err := store.Put(t.Context(), k.follower.keys.slot(7), value); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it reads them", func() bool { return d.journal.count("a key in etcd was ignored") == 3 })
	if owner, ok := d.Owner(7); !ok || owner.ID != "a" {
		t.Errorf("slot 7 has owner %v, want the last known one", owner)
	}
}

func TestADirectoryRefusesWhatCannotWork(t *testing.T) {
	_, err := NewDirectory("windlass", Deps{Client: store, Log: newSilentLog()})
	wantMention(t, err, "Prefix")
	_, err = NewDirectory("/windlass", Deps{Client: store})
	wantMention(t, err, "Log")
}
