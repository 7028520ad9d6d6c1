package provisioner

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// fakeTaker takes, or refuses to, and keeps whom to tell.
type fakeTaker struct {
	refuses bool
	taken   []invocation.CID
	spec    InstanceSpec
	tell    func(bool)
}

func (r *fakeTaker) Take(_ string, cid invocation.CID, spec InstanceSpec, told func(bool)) bool {
	if r.refuses {
		return false
	}
	r.taken, r.spec, r.tell = append(r.taken, cid), spec, told
	return true
}

// takers is a provisioner with a spare instance that is ready.
type takers struct {
	*Provisioner
	taker *fakeTaker
	spare Key
	now   time.Time
	heard []bool
}

func newTakers() *takers {
	w := &takers{taker: &fakeTaker{}, now: time.Unix(1000, 0)}
	w.Provisioner = New(
		Config{Nodes: []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: 400, Memory: 1 << 40}}}},
		Deps{
			Runtime: &fakeRuntime{exits: make(chan Exit, 16)}, Taker: w.taker, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return w.now },
			Identify: func(proof string) (Key, error) {
				if proof == "pod" {
					return w.spare, nil
				}
				return Key{}, ErrUnknownInstance
			},
		},
	)
	pool := function()
	pool.UID = "pool"
	w.spare = w.Order(pool, invocation.Term{Epoch: 1}, 1).Keys[0]
	w.Connect(w.spare)
	w.Pulled(w.spare)
	return w
}

func (w *takers) take() (Key, bool) {
	return w.Take(function(), invocation.Term{Epoch: 7}, w.spare, func(_ Key, taken bool) { w.heard = append(w.heard, taken) })
}

// fail has a start of a function fail.
func (w *takers) fail(uid string) {
	a := w.open(uid)
	defer a.mu.Unlock()
	a.guard.Failed(w.now, StartFailure{})
}

func TestWhatIsTakenCountsAsOrdered(t *testing.T) {
	w := newTakers()
	before := requested(w.Provisioner)
	key, ok := w.take()
	if !ok || key != (Key{"u", cid1}) || w.taker.spec.CID != cid1 || w.taker.spec.Node != "n" {
		t.Fatalf("took %v, %v, to start %+v", key, ok, w.taker.spec)
	}
	if got := w.Observe("u").Counts; got != (Counts{Creating: 1}) {
		t.Errorf("the function has %+v", got)
	}
	if got := w.Observe("pool").Counts; got != (Counts{}) {
		t.Errorf("the pool has %+v", got)
	}
	if got := requested(w.Provisioner); got != before {
		t.Errorf("the node had requests of %+v, and has %+v", before, got)
	}
	w.taker.tell(true)
	w.now = w.now.Add(time.Second)
	if took, first := w.Pulled(key); !first || took != 0 {
		t.Errorf("it pulled, first %v, after %v: its start says nothing of others", first, took)
	}
	if _, again := w.take(); again || len(w.heard) != 1 || !w.heard[0] {
		t.Errorf("taken again: %v; told %v", again, w.heard)
	}
}

func TestOfWhatCouldNotBeTakenNothingIsLeft(t *testing.T) {
	w := newTakers()
	if _, ok := w.take(); !ok {
		t.Fatal("it was not taken")
	}
	w.taker.tell(false)
	if w.Observe("u").Counts != (Counts{}) || w.Observe("pool").Counts != (Counts{}) || requested(w.Provisioner) != (placement.Amount{}) {
		t.Errorf("there are %+v and %+v, with requests of %+v", w.Observe("u").Counts, w.Observe("pool").Counts, requested(w.Provisioner))
	}
	if _, _, failing := startsFail(w.Inventory, "u"); failing || len(w.heard) != 1 || w.heard[0] {
		t.Errorf("failing %v, told %v", failing, w.heard)
	}
	// The name is not given again.
	if keys := w.Order(function(), invocation.Term{Epoch: 7}, 1).Keys; keys[0].CID != cid2 {
		t.Errorf("the next one is %s", keys[0].CID)
	}
}

func TestWhoCannotTake(t *testing.T) {
	for name, spoil := range map[string]func(w *takers){
		"the runtime has none":     func(w *takers) { w.taker.refuses = true },
		"its stream is gone":       func(w *takers) { w.Disconnect(w.spare) },
		"it was stopped":           func(w *takers) { w.End(w.spare, Ending{}) },
		"there is none":            func(w *takers) { w.spare.CID = "other" },
		"the function has failed":  func(w *takers) { w.fail("u") },
		"nobody keeps any of them": func(w *takers) { w.deps.Taker = nil },
	} {
		w := newTakers()
		spoil(w)
		if key, ok := w.take(); ok || w.Observe("u").Counts != (Counts{}) || len(w.taker.taken) != 0 || len(w.heard) != 0 {
			t.Errorf("%s: took %v, %v; the function has %+v", name, key, ok, w.Observe("u").Counts)
		}
	}
}

func TestInstancesAreRecognizedByTheirProof(t *testing.T) {
	w := newTakers()
	if in, err := w.Recognize("pod"); err != nil || in.Key != w.spare {
		t.Errorf("recognized %+v, %v", in.Key, err)
	}
	if _, err := w.Recognize("stranger"); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("a stranger: %v", err)
	}
	w.spare.CID = "other"
	if _, err := w.Recognize("pod"); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("a pod that nobody ordered: %v", err)
	}
	w.identify = nil
	if _, err := w.Recognize("pod"); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("without pods: %v", err)
	}
}
