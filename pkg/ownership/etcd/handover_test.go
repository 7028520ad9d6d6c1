package etcd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/coordinator"
)

// history is what was done to the keys of slots since a revision.
type history struct {
	// deleted counts keys that were removed, moved those that came to name
	// another owner, and often is how often that befell the same one at most.
	deleted, moved, often int
}

// since reads the history of a test's slots after the revision at which the
// owners were listed.
func since(t *testing.T, listed *clientv3.GetResponse) history {
	t.Helper()
	owners := make(map[string]string)
	for _, kv := range listed.Kvs {
		owners[string(kv.Key)] = string(kv.Value)
	}
	var h history
	moves := make(map[string]int)
	watch := store.Watch(t.Context(), keys(prefix(t)).slots(), clientv3.WithPrefix(),
		clientv3.WithRev(listed.Header.Revision+1))
	// The last event that matters is known by a key that is written now.
	last, err := store.Put(t.Context(), keys(prefix(t)).slots()+"last", "")
	if err != nil {
		t.Fatal(err)
	}
	for answer := range watch {
		if err := answer.Err(); err != nil {
			t.Fatal(err)
		}
		for _, event := range answer.Events {
			name, value := string(event.Kv.Key), string(event.Kv.Value)
			switch {
			case event.Kv.ModRevision >= last.Header.Revision:
				return h
			case event.Type == clientv3.EventTypeDelete:
				h.deleted++
			case owners[name] != value:
				h.moved++
				moves[name]++
				h.often = max(h.often, moves[name])
				owners[name] = value
			}
		}
	}
	t.Fatalf("the watch ended before revision %d", last.Header.Revision)
	return h
}

func list(t *testing.T) *clientv3.GetResponse {
	t.Helper()
	answer, err := store.Get(t.Context(), keys(prefix(t)).slots(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestACoordinatorThatEndsHandsOverWithoutAGap(t *testing.T) {
	all := sharing(t, time.Minute, "a", "b", "c")
	a, b, c := all[0], all[1], all[2]
	d := directory(t)
	<-d.Ready()
	before, held, listed := a.epochs(), a.holding(), list(t)
	a.end()
	if h := since(t, listed); h.deleted != 0 || h.moved != held {
		t.Errorf("of the %d slots of a, %d moved and %d lost their key", held, h.moved, h.deleted)
	}
	eventually(t, "the others hold all slots", func() bool { return b.holding()+c.holding() == ownership.Slots })
	eventually(t, "the directory has dropped the member", func() bool {
		return slices.Equal(d.Map().Members(), []ownership.Member{{ID: "b", Addr: "b:7000"}, {ID: "c", Addr: "c:7000"}})
	})
	if !a.holdsNone() {
		t.Error("a has ended and holds slots")
	}
	for slot, epoch := range before {
		now, _ := d.Owner(ownership.Slot(slot))
		if epoch != 0 && (now.ID == "a" || now.Epoch <= epoch) {
			t.Fatalf("slot %d of a, in epoch %d, has owner %+v", slot, epoch, now)
		}
	}
}

func TestACoordinatorThatEndsWithAMemberThatDiesLeavesNothing(t *testing.T) {
	a := runCoordinator(t, "a")
	<-a.Ready()
	lease, err := store.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	member := encode(coordinator.Value{ID: "b", Addr: "b:7000"})
	if _, err := store.Put(t.Context(), a.follower.keys.member("b"), member, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	// The first transaction at the end comes after a has read that b is a member.
	a.line.beforeTxn = sync.OnceFunc(func() {
		if _, err := store.Revoke(context.Background(), lease.ID); err != nil {
			t.Error(err)
		}
	})
	a.end()
	if left := list(t); left.Count != 0 {
		t.Errorf("it has ended and left %d keys", left.Count)
	}
}

func TestAMemberThatComesIsGivenSlotsWithoutAGap(t *testing.T) {
	t.Parallel()
	a := runCoordinator(t, "a")
	<-a.Ready()
	listed := list(t)
	b := runCoordinator(t, "b")
	eventually(t, "b is given slots", func() bool { return !b.holdsNone() })
	a.end()
	eventually(t, "b holds every slot", b.holdsAll)
	if h := since(t, listed); h.deleted != 0 || h.moved != ownership.Slots {
		t.Errorf("%d slots moved and %d lost their key, want each to move once", h.moved, h.deleted)
	}
}

// A machine that is slow enough may take longer than the head start: then the
// other one claims.
func TestALeaseThatIsRevokedMovesNoSlotTwice(t *testing.T) {
	both := sharing(t, time.Minute, "a", "b")
	a, b := both[0], both[1]
	listed, before := list(t), a.epochs()
	if _, err := store.Revoke(t.Context(), leaseOf(t, "a")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "every slot of a is held in a new epoch", func() bool {
		for slot, now := range a.epochs() {
			others, _ := b.Epoch(ownership.Slot(slot))
			if before[slot] != 0 && max(now, others) <= before[slot] {
				return false
			}
		}
		return true
	})
	if h := since(t, listed); h.often > 1 {
		t.Errorf("slots moved %d times, want at most once", h.often)
	}
}

// All leases end while nobody reaches etcd, and b is the first who does again.
func TestAnOutageThatOutlastsTheLeasesMovesNothing(t *testing.T) {
	t.Parallel()
	both := sharing(t, time.Second, "a", "b")
	a, b := both[0], both[1]
	listed := list(t)
	a.line.down()
	b.line.down()
	eventually(t, "the keys are gone", func() bool { return list(t).Count == 0 })
	if since, unconfirmed := a.Unconfirmed(); !unconfirmed || time.Since(since) < 0 {
		t.Errorf("a is an orphan since %v: %v, want so", since, unconfirmed)
	}
	if _, unconfirmed := b.Unconfirmed(); !unconfirmed || a.holding()+b.holding() != ownership.Slots {
		t.Error("they let go of slots, or do not know that they are orphans")
	}
	b.line.mend(store)
	eventually(t, "b has claimed its own", func() bool { return int(list(t).Count) == b.holding() })
	a.line.mend(store)
	eventually(t, "all keys are there", func() bool { return list(t).Count == ownership.Slots })
	if h := since(t, listed); h.moved != 0 {
		t.Errorf("%d slots moved, want none", h.moved)
	}
	eventually(t, "a is no orphan any more", func() bool { _, unconfirmed := a.Unconfirmed(); return !unconfirmed })
}

func TestAKeyThatWasWrittenByHandIsRepaired(t *testing.T) {
	a := runCoordinator(t, "a")
	<-a.Ready()
	d := directory(t)
	<-d.Ready()
	name := a.follower.keys.slot(7)
	for _, value := range []string{`{"id":"x","addr":"x:1"}`, encode(coordinator.Value{ID: "a", Addr: "a:7000"}), "nobody"} {
		written, err := store.Put(t.Context(), name, value)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the slot is the keeper's again, in a later epoch", func() bool {
			epoch, held := a.Epoch(7)
			if !held {
				t.Fatal("the keeper let go of a slot that no scheduler has")
			}
			owner, _ := d.Owner(7)
			return epoch > uint64(written.Header.Revision) && owner.ID == "a" && owner.Epoch == epoch
		})
	}
}

func TestADirectoryLearnsFromOthers(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	l := newLine(t)
	l.down()
	d := directoryOn(t, l, 5*time.Millisecond)
	var known ownership.Map
	known.Update(7, ownership.Owner{ID: "x", Addr: "x:1", Epoch: 1})
	known.Update(8, ownership.Owner{ID: "x", Addr: "x:1", Epoch: 1 << 60})
	known.SetMembers([]ownership.Member{{ID: "x", Addr: "x:1"}})
	d.Seed(&known)
	<-d.Ready()
	<-d.Changed()
	if owner, _ := d.Owner(7); owner.ID != "x" || len(d.Map().Members()) != 1 {
		t.Errorf("slot 7 has owner %v, want the one that it was told", owner)
	}
	news := ownership.Owner{ID: "y", Addr: "y:1", Epoch: 2}
	if !d.Update(7, news) || d.Update(7, ownership.Owner{ID: "z", Addr: "z:1", Epoch: 2}) || d.Update(ownership.Slots, news) {
		t.Error("it does not go by epochs")
	}
	if owner, _ := d.Map().Owner(7); owner != news {
		t.Errorf("slot 7 has owner %v, want %v", owner, news)
	}
	<-d.Changed()

	l.mend(store)
	eventually(t, "etcd counts, whatever others named", func() bool { return d.agrees(k) })
	d.Seed(&known)
	d.Update(7, ownership.Owner{ID: "x", Addr: "x:1", Epoch: 1 << 60})
	eventually(t, "etcd corrects it", func() bool { return d.agrees(k) })
	if members := d.Map().Members(); len(members) != 1 || members[0].ID != "a" {
		t.Errorf("the members are %v", members)
	}
}

// BenchmarkOwnership prints how long it takes to claim all slots, to hand them
// over, and how often etcd is written to for that.
func BenchmarkOwnership(b *testing.B) {
	n := 0
	for b.Loop() {
		n++
		config := Config{ID: "a", Addr: "a:1", Prefix: fmt.Sprintf("/bench/%d", n), TTL: time.Minute}
		start := func() (*Coordinator, func()) {
			k, err := NewCoordinator(config, Deps{Client: store, Log: newSilentLog()})
			if err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			ended := make(chan error)
			go func() { ended <- k.Run(ctx) }()
			<-k.Ready()
			return k, func() {
				cancel()
				<-ended
			}
		}
		before, begun := revision(b), time.Now()
		_, end := start()
		b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms-to-claim")
		b.ReportMetric(float64(revision(b)-before), "writes-to-claim")
		config.ID = "b"
		_, endStandby := start()
		before, begun = revision(b), time.Now()
		end()
		b.ReportMetric(float64(time.Since(begun).Microseconds())/1000, "ms-to-hand-over")
		b.ReportMetric(float64(revision(b)-before), "writes-to-hand-over")
		endStandby()
	}
}

func revision(b *testing.B) int64 {
	answer, err := store.Get(b.Context(), "/")
	if err != nil {
		b.Fatal(err)
	}
	return answer.Header.Revision
}
