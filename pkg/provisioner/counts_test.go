package provisioner

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// counted is what the instances of a function come to when they are counted one by
// one, and how many are of another revision.
func counted(v *Inventory, uid, revision string) (c Counts, outdated int) {
	for _, in := range v.Instances(uid) {
		c = c.plus(countsFor(&in))
		if in.Revision != revision {
			outdated++
		}
	}
	return c, outdated
}

// aRandomLife lets one thing happen to the instances of a function.
func aRandomLife(v *Inventory, r *rand.Rand, uid string, now time.Time) {
	pick := func() Key {
		all := v.Instances(uid)
		if len(all) == 0 {
			return Key{FunctionUID: uid}
		}
		return all[r.IntN(len(all))].Key
	}
	switch r.IntN(10) {
	case 0, 1:
		v.Order(uid, invoke.Term{Epoch: 1}, Instance{Revision: strconv.Itoa(r.IntN(3)), Ordered: now})
	case 2:
		cid := invoke.Term{Epoch: 9}.CID(uint64(r.IntN(5)))
		v.Adopt(Instance{Key: Key{FunctionUID: uid, CID: cid}, Revision: "0", Ran: r.IntN(2) == 0, State: State(2 * r.IntN(2))})
	case 3:
		v.Connect(pick())
	case 4:
		v.Pulled(pick(), now)
	case 5:
		v.Disconnect(pick(), now)
	case 6:
		v.Leave(pick(), now)
	case 7:
		v.Withdraw(uid, r.IntN(3))
	case 8:
		_, _ = v.Remove(pick())
	case 9:
		if r.IntN(10) == 0 {
			v.Release(uid)
		} else {
			v.Break(pick(), v1alpha1.ReasonCallBroken, "broken", now)
		}
	}
}

func TestM5CountsThatAreKeptAreThoseThatWouldBeCounted(t *testing.T) {
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		v, now := NewInventory(), time.Unix(1_000_000, 0)
		for step := range 500 {
			uid := strconv.Itoa(r.IntN(2))
			aRandomLife(v, r, uid, now.Add(time.Duration(step)*time.Second))
			want, outdated := counted(v, uid, "1")
			if got := v.Count(uid); got != want {
				t.Fatalf("seed %d, step %d: the counts are %+v, want %+v", seed, step, got, want)
			}
			if got := v.Outdated(uid, "1"); got != outdated {
				t.Fatalf("seed %d, step %d: %d are outdated, want %d", seed, step, got, outdated)
			}
		}
	}
}

// Calls read counts: they must not wait for what the provisioner does for others.
func TestM5CountsAreReadWhileTheProvisionerIsBusy(t *testing.T) {
	p := New(Config{}, Deps{Now: time.Now})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inventory.Order("u", invoke.Term{Epoch: 1}, Instance{})
	if got := p.Count("u"); got.Creating != 1 {
		t.Errorf("counts are %+v, want one that is being created", got)
	}
	if _, _, failing := p.Failing("u"); failing {
		t.Error("the function fails")
	}
}
