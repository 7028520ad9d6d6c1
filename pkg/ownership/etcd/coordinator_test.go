package etcd

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

func TestACoordinatorHoldsEverySlot(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	if !k.holdsAll() {
		t.Errorf("it is ready and holds %v, want every slot", k.epochs())
	}
	slots, err := store.Get(t.Context(), prefix(t)+"/slots/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	var revisions []uint64
	for _, kv := range slots.Kvs {
		revisions = append(revisions, uint64(kv.ModRevision))
	}
	if diff := cmp.Diff(revisions, k.epochs()); diff != "" {
		t.Errorf("epochs are not the keys' revisions (-etcd +keeper):\n%s", diff)
	}
	first := slots.Kvs[0]
	if got, want := string(first.Key)+" "+string(first.Value), prefix(t)+`/slots/0000 {"id":"a","addr":"a:7000"}`; got != want {
		t.Errorf("the first key is %s, want %s", got, want)
	}
	if got := clientv3.LeaseID(first.Lease); got != leaseOf(t, "a") {
		t.Errorf("the slot's lease is %x, want the member's, %x", got, leaseOf(t, "a"))
	}
	if _, ok := k.Epoch(ownership.Slots); ok {
		t.Error("it holds a slot that does not exist")
	}
}

func TestACoordinatorThatEndsGivesEverythingBack(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	k.line.beforeRevoke = func() {
		if !k.holdsNone() {
			t.Errorf("it still holds %v when others can claim", k.epochs())
		}
	}
	k.end()
	if !k.holdsNone() {
		t.Errorf("it has ended and holds %v", k.epochs())
	}
	left, err := store.Get(t.Context(), prefix(t)+"/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if left.Count != 0 {
		t.Errorf("it has ended and left %d keys", left.Count)
	}
}

func TestACoordinatorTakesOverTheSlotsOfOneThatEnds(t *testing.T) {
	a := runCoordinator(t, "a")
	<-a.Ready()
	b := runCoordinator(t, "b")
	<-b.Ready()
	if !b.holdsNone() {
		t.Errorf("b holds %v, want nothing while a lives", b.epochs())
	}
	before := a.epochs()
	a.end()
	eventually(t, "b holds every slot", b.holdsAll)
	if !allRose(before, b.epochs()) {
		t.Errorf("epochs went from %v to %v, want each to rise", before, b.epochs())
	}
}

func TestNoTwoCoordinatorsHoldASlotInOneEpoch(t *testing.T) {
	coordinators := []runningCoordinator{runCoordinator(t, "a"), runCoordinator(t, "b"), runCoordinator(t, "c")}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	t.Cleanup(watching.Wait)
	t.Cleanup(sync.OnceFunc(func() { close(stop) }))
	var mu sync.Mutex
	all := func() []runningCoordinator {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(coordinators)
	}
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				lookForTwoHolders(t, all())
			}
		}
	})

	random := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		alive := all()
		eventually(t, "every slot is held", func() bool {
			held := 0
			for _, k := range alive {
				for _, epoch := range k.epochs() {
					if epoch != 0 {
						held++
					}
				}
			}
			return held == ownership.Slots
		})
		i := random.IntN(len(alive))
		alive[i].end()
		next := runCoordinator(t, alive[i].config.ID)
		mu.Lock()
		coordinators[i] = next
		mu.Unlock()
	}
}

// lookForTwoHolders fails the test if two of the coordinators hold a slot in one
// epoch.
func lookForTwoHolders(t *testing.T, coordinators []runningCoordinator) {
	for i := range ownership.Slots {
		holders := make(map[uint64]string)
		for _, k := range coordinators {
			epoch, ok := k.Epoch(ownership.Slot(i))
			if other, twice := holders[epoch]; ok && twice {
				t.Errorf("%s and %s hold slot %d in epoch %d", other, k.config.ID, i, epoch)
			}
			holders[epoch] = k.config.ID
		}
	}
}

func TestACoordinatorWhoseLeaseIsLostClaimsAgain(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	before := k.epochs()
	if _, err := store.Revoke(t.Context(), leaseOf(t, "a")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "every slot is held in a new epoch", func() bool {
		now := k.epochs()
		if slices.Contains(now, 0) {
			t.Fatal("it let go of a slot that nobody else has")
		}
		return allRose(before, now)
	})
}

func TestACoordinatorWithoutSlotsComesBackAfterItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	a := runCoordinator(t, "a")
	<-a.Ready()
	b := runCoordinatorWithTTL(t, "b", time.Second)
	<-b.Ready()
	lost := leaseOf(t, "b")
	if _, err := store.Revoke(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is a member again", func() bool {
		answer, err := store.Get(t.Context(), b.follower.keys.member("b"))
		return err == nil && len(answer.Kvs) == 1 && clientv3.LeaseID(answer.Kvs[0].Lease) != lost
	})
}

func TestACoordinatorClaimsAKeyThatWasDeleted(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	before, _ := k.Epoch(7)
	if _, err := store.Delete(t.Context(), k.follower.keys.slot(7)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slot is held in a new epoch", func() bool {
		now, ok := k.Epoch(7)
		return ok && now > before
	})
}

func TestAnOutageMovesNothing(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	before := k.epochs()
	k.line.down()
	eventually(t, "it notices the outage, and tries more than once", func() bool {
		return k.journal.count("interrupted") > 1
	})
	if diff := cmp.Diff(before, k.epochs()); diff != "" {
		t.Errorf("epochs changed in the outage (-before +during):\n%s", diff)
	}

	k.line.mend(store)
	if _, err := store.Delete(t.Context(), k.follower.keys.slot(7)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it claims again", func() bool {
		now, _ := k.Epoch(7)
		return now > before[7]
	})
	after := k.epochs()
	after[7] = before[7]
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the lease outlived the outage, but epochs changed (-before +after):\n%s", diff)
	}
}

func TestACoordinatorOutlivesTheTTL(t *testing.T) {
	t.Parallel()
	k := runCoordinatorWithTTL(t, "a", time.Second)
	<-k.Ready()
	before := k.epochs()

	// This lease lasts longer than the keeper's and nobody renews it.
	lease, err := store.Grant(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	canary := prefix(t) + "/canary"
	if _, err := store.Put(t.Context(), canary, "", clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a lease that is not renewed ends", func() bool {
		answer, err := store.Get(t.Context(), canary)
		return err == nil && answer.Count == 0
	})
	slots, err := store.Get(t.Context(), k.follower.keys.slots(), clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for i, kv := range slots.Kvs {
		if uint64(kv.ModRevision) != before[i] {
			t.Fatalf("slot %d is in epoch %d, want %d: the lease was not kept", i, kv.ModRevision, before[i])
		}
	}
	if slots.Count != ownership.Slots {
		t.Errorf("etcd has %d slots, want all", slots.Count)
	}
}

func TestACoordinatorThatIsCutOffHoldsOnUntilItLearnsOfAnother(t *testing.T) {
	t.Parallel()
	a := runCoordinatorWithTTL(t, "a", time.Second)
	<-a.Ready()
	b := runCoordinator(t, "b")
	<-b.Ready()
	before := a.epochs()
	a.line.down()
	eventually(t, "b gets the slots when a's lease ends", b.holdsAll)
	if diff := cmp.Diff(before, a.epochs()); diff != "" {
		t.Errorf("a let go though it cannot know of b (-before +after):\n%s", diff)
	}
	if !allRose(before, b.epochs()) {
		t.Errorf("b's epochs are %v, want each above a's %v", b.epochs(), before)
	}
	a.line.mend(store)
	eventually(t, "a learns of b", a.holdsNone)
	if !b.holdsAll() {
		t.Error("a took slots from b")
	}
}

func TestACoordinatorEndsWithoutEtcd(t *testing.T) {
	k := runCoordinator(t, "a")
	<-k.Ready()
	k.line.down()
	k.end()
	if !k.holdsNone() {
		t.Errorf("it has ended and holds %v", k.epochs())
	}
}

func TestASuccessorOfTheSameNameDoesNotWaitForTheLease(t *testing.T) {
	killed := runCoordinator(t, "a")
	<-killed.Ready()
	before := killed.epochs()
	killed.line.down()
	killed.end()

	successor := runCoordinator(t, "a")
	<-successor.Ready()
	if !successor.holdsAll() || !allRose(before, successor.epochs()) {
		t.Errorf("the successor holds %v, want every slot, each above %v", successor.epochs(), before)
	}
}

func TestOfTwoCoordinatorsOfOneNameTheLaterOneHoldsTheSlots(t *testing.T) {
	earlier := runCoordinator(t, "a")
	<-earlier.Ready()
	later := runCoordinator(t, "a")
	<-later.Ready()
	eventually(t, "the earlier one lets go", earlier.holdsNone)
	before := later.epochs()

	// Both see this change, which may tempt them to take from each other.
	if _, err := store.Delete(t.Context(), later.follower.keys.slot(7)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "one of them claims the slot", func() bool {
		first, _ := earlier.Epoch(7)
		second, _ := later.Epoch(7)
		return max(first, second) > before[7]
	})
	eventually(t, "they agree on who has it", func() bool {
		_, first := earlier.Epoch(7)
		_, second := later.Epoch(7)
		return first != second
	})
	after := later.epochs()
	after[7] = before[7]
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("other slots changed hands too (-before +after):\n%s", diff)
	}
}

func TestACoordinatorLeavesAloneWhatItCannotRead(t *testing.T) {
	// A lease says that some scheduler wrote it, maybe of a later version.
	lease, err := store.Grant(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/slots/0007", "/slots/9999", "/slots/seven"} {
		if _, err := store.Put(t.Context(), prefix(t)+key, "not an owner", clientv3.WithLease(lease.ID)); err != nil {
			t.Fatal(err)
		}
	}
	k := runCoordinator(t, "a")
	<-k.Ready()
	if epoch, ok := k.Epoch(7); ok {
		t.Errorf("it holds the slot of somebody unknown in epoch %d", epoch)
	}
	if _, ok := k.Epoch(8); !ok {
		t.Error("it does not hold the slots beside")
	}
	if got := k.journal.count("a key in etcd was ignored"); got != 3 {
		t.Errorf("it logged %d keys as ignored, want 3", got)
	}
}

func TestACoordinatorSurvivesThatEtcdIsWiped(t *testing.T) {
	empty := emptyStore(t)
	k := runCoordinator(t, "a")
	<-k.Ready()
	k.line.down()
	k.line.mend(empty)
	eventually(t, "the new etcd has every slot", func() bool {
		slots, err := empty.Get(t.Context(), k.follower.keys.slots(), clientv3.WithPrefix(), clientv3.WithCountOnly())
		return err == nil && slots.Count == ownership.Slots
	})
	if !k.holdsAll() {
		t.Error("it let go of slots that nobody else has")
	}
	if got := k.journal.count("went back"); got != 1 {
		t.Errorf("it logged %d times that etcd went back, want once", got)
	}
}

func TestACoordinatorRefusesWhatCannotWork(t *testing.T) {
	good := Config{ID: "a", Addr: "a:7000", Prefix: "/windlass", TTL: 10 * time.Second}
	deps := Deps{Client: store, Log: newSilentLog()}
	if _, err := NewCoordinator(good, deps); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*Config, *Deps)
		field  string
	}{
		"no id":                  {func(c *Config, _ *Deps) { c.ID = "" }, "ID"},
		"an id that is a path":   {func(c *Config, _ *Deps) { c.ID = "a/b" }, "ID"},
		"an address, no port":    {func(c *Config, _ *Deps) { c.Addr = "a" }, "Addr"},
		"no prefix":              {func(c *Config, _ *Deps) { c.Prefix = "/" }, "Prefix"},
		"a relative prefix":      {func(c *Config, _ *Deps) { c.Prefix = "windlass" }, "Prefix"},
		"a prefix that is open":  {func(c *Config, _ *Deps) { c.Prefix = "/windlass/" }, "Prefix"},
		"a lease that is a spot": {func(c *Config, _ *Deps) { c.TTL = time.Millisecond }, "TTL"},
		"a lease for ever":       {func(c *Config, _ *Deps) { c.TTL = time.Hour }, "TTL"},
		"a start that is long":   {func(c *Config, _ *Deps) { c.Settle = time.Minute }, "Settle"},
		"no client":              {func(_ *Config, d *Deps) { d.Client = nil }, "Client"},
		"no log":                 {func(_ *Config, d *Deps) { d.Log = nil }, "Log"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c, d := good, deps
			tt.change(&c, &d)
			_, err := NewCoordinator(c, d)
			wantMention(t, err, tt.field)
		})
	}
}
