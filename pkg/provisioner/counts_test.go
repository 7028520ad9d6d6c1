package provisioner

import (
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// counted is what the instances of a function come to when they are counted one by one.
func counted(v *Inventory, uid string) (c Counts) {
	for _, in := range v.Instances(uid) {
		c = c.plus(countsFor(&in))
	}
	return c
}

// adopted enters an instance that somebody else started.
func adopted(v *Inventory, in Instance) {
	v.adopt(in.FunctionUID, func() []Instance { return []Instance{in} })
}

// randomLifecycle lets one thing happen to the instances of a function.
func randomLifecycle(v *Inventory, r *rand.Rand, uid string) {
	pick := func() Key {
		all := v.Instances(uid)
		if len(all) == 0 {
			return Key{FunctionUID: uid}
		}
		return all[r.IntN(len(all))].Key
	}
	switch r.IntN(11) {
	case 0, 1:
		v.launch(uid, invocation.Term{Epoch: 1}.CID, 1, func() (Instance, bool) {
			return Instance{Revision: strconv.Itoa(r.IntN(3)), Launched: v.now()}, true
		})
	case 2:
		cid := invocation.Term{Epoch: 9}.CID(uint64(r.IntN(5)))
		adopted(v, Instance{Key: Key{FunctionUID: uid, CID: cid}, Revision: "0", Ran: r.IntN(2) == 0, State: State(2 * r.IntN(2))})
	case 3:
		v.Connect(pick())
	case 4:
		v.Pulled(pick())
	case 5:
		v.Disconnect(pick())
	case 6:
		v.markEnding(pick(), Ending{Within: time.Minute})
	case 7:
		v.cancelLaunches(uid, r.IntN(3))
	case 8:
		v.removeWithoutExit(pick())
	case 9:
		if r.IntN(10) == 0 {
			v.release(uid, func() {})
		} else {
			v.markEnding(pick(), Ending{Within: time.Minute, Code: v1alpha1.ReasonCallBroken, Reason: "broken"})
		}
	case 10:
		v.takeOverdue(func(string) bool { return true }, func(in *Instance) time.Time { return in.Launched })
	}
}

func TestM5CountsThatAreKeptAreThoseThatWouldBeCounted(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := time.Unix(1_000_000, 0)
		v := newInventory(func() time.Time { return now })
		for step := range 500 {
			uid := strconv.Itoa(r.IntN(2))
			now = now.Add(time.Second)
			randomLifecycle(v, r, uid)
			want := counted(v, uid)
			if got := v.Observe(uid).Counts; got != want {
				t.Fatalf("seed %d, step %d: the counts are %+v, want %+v", seed, step, got, want)
			}
		}
	}
}

// Calls read counts: they must not wait for what the provisioner does for others, which
// includes asking its runtime.
func TestM5CountsAreReadWhileTheProvisionerIsBusyWithAnotherFunction(t *testing.T) {
	v := newInventory(time.Now)
	adopted(v, Instance{Key: Key{FunctionUID: "u"}})
	v.adopt("other", func() []Instance {
		if got := v.Observe("u"); got.Creating != 1 || got.Failing {
			t.Errorf("observed %+v, want one that is being created", got)
		}
		return nil
	})
}

func TestToObserveAllocatesNothing(t *testing.T) {
	v := newInventory(time.Now)
	adopted(v, Instance{Key: Key{FunctionUID: "u"}})
	key := Key{FunctionUID: "u"}
	if got := testing.AllocsPerRun(100, func() {
		_, _ = v.Observe("u"), has(v, key)
		v.Connect(key)
		v.Pulled(key)
		v.Disconnect(key)
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestNothingIsEnteredInAnAccountThatIsClosed(t *testing.T) {
	v := newInventory(time.Now)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 2000 {
				for _, in := range v.launch("u", invocation.Term{Epoch: 1}.CID, 1, func() (Instance, bool) { return Instance{Node: "n"}, true }) {
					v.Forget("u")
					v.removeWithoutExit(in.Key)
				}
			}
		})
	}
	running.Wait()
	v.Forget("u")
	if on := v.usage.instances(); len(on) > 0 || len(v.functions) > 0 || v.Observe("u").Counts != (Counts{}) {
		t.Errorf("left: on nodes %v, accounts %v, counts %+v", on, v.functions, v.Observe("u").Counts)
	}
}
