package provisioner

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
)

// fakeAssigner takes, or refuses to, and keeps whom to tell.
type fakeAssigner struct {
	refuses  bool
	assigned []invocation.CID
	spec     InstanceSpec
	done     func(AssignResult)
}

func (r *fakeAssigner) Assign(_ string, cid invocation.CID, spec InstanceSpec, done func(AssignResult)) bool {
	if r.refuses {
		return false
	}
	r.assigned, r.spec, r.done = append(r.assigned, cid), spec, done
	return true
}

// assignHarness is a provisioner with a spare instance that is ready.
type assignHarness struct {
	*Provisioner
	driver  *fakeAssigner
	spare   Key
	now     time.Time
	results []AssignResult
}

func newAssignHarness() *assignHarness {
	w := &assignHarness{driver: &fakeAssigner{}, now: time.Unix(1000, 0)}
	w.Provisioner = New(
		Config{Nodes: []placement.Node{{Name: "n", Allocatable: placement.Amount{MilliCPU: 400, Memory: 1 << 40}}}},
		Deps{
			Driver: &fakeDriver{exits: make(chan Exit, 16)}, Assigner: w.driver, Log: slog.New(slog.DiscardHandler),
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
	w.spare = w.Launch(pool, invocation.Term{Epoch: 1}, 1).Keys[0]
	w.Connect(w.spare)
	w.Pulled(w.spare)
	return w
}

func (w *assignHarness) assign() (Key, bool) {
	return w.Assign(function(), invocation.Term{Epoch: 7}, w.spare, func(_ Key, result AssignResult) { w.results = append(w.results, result) })
}

// fail has a start of a function fail.
func (w *assignHarness) fail(uid string) {
	a := w.lockOrAdd(uid)
	defer a.mu.Unlock()
	a.backoff.Failed(w.now, w.now, StartFailure{})
}

func TestWhatIsTakenCountsAsOrdered(t *testing.T) {
	w := newAssignHarness()
	before := requested(w.Provisioner)
	key, ok := w.assign()
	if !ok || key != (Key{"u", cid1}) || w.driver.spec.CID != cid1 || w.driver.spec.Node != "n" {
		t.Fatalf("took %v, %v, to start %+v", key, ok, w.driver.spec)
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
	w.driver.done(AssignTaken)
	w.now = w.now.Add(time.Second)
	if took, first := w.Pulled(key); !first || took != 0 {
		t.Errorf("it pulled, first %v, after %v: its start says nothing of others", first, took)
	}
	if _, again := w.assign(); again || len(w.results) != 1 || w.results[0] != AssignTaken {
		t.Errorf("taken again: %v; told %v", again, w.results)
	}
}

func TestOfWhatCouldNotBeTakenNothingIsLeft(t *testing.T) {
	w := newAssignHarness()
	if _, ok := w.assign(); !ok {
		t.Fatal("it was not taken")
	}
	w.driver.done(AssignGone)
	if w.Observe("u").Counts != (Counts{}) || w.Observe("pool").Counts != (Counts{}) || requested(w.Provisioner) != (placement.Amount{}) {
		t.Errorf("there are %+v and %+v, with requests of %+v", w.Observe("u").Counts, w.Observe("pool").Counts, requested(w.Provisioner))
	}
	if _, _, failing := startsFail(w.Inventory, "u"); failing || len(w.results) != 1 || w.results[0] != AssignGone {
		t.Errorf("failing %v, told %v", failing, w.results)
	}
	// The name is not given again.
	if keys := w.Launch(function(), invocation.Term{Epoch: 7}, 1).Keys; keys[0].CID != cid2 {
		t.Errorf("the next one is %s", keys[0].CID)
	}
}

func TestWhoCannotTake(t *testing.T) {
	for name, corrupt := range map[string]func(w *assignHarness){
		"the runtime has none":     func(w *assignHarness) { w.driver.refuses = true },
		"its stream is gone":       func(w *assignHarness) { w.Disconnect(w.spare) },
		"it was stopped":           func(w *assignHarness) { w.End(w.spare, Ending{}) },
		"there is none":            func(w *assignHarness) { w.spare.CID = "other" },
		"the function has failed":  func(w *assignHarness) { w.fail("u") },
		"nobody keeps any of them": func(w *assignHarness) { w.deps.Assigner = nil },
	} {
		w := newAssignHarness()
		corrupt(w)
		if key, ok := w.assign(); ok || w.Observe("u").Counts != (Counts{}) || len(w.driver.assigned) != 0 || len(w.results) != 0 {
			t.Errorf("%s: took %v, %v; the function has %+v", name, key, ok, w.Observe("u").Counts)
		}
	}
}

func TestInstancesAreRecognizedByTheirProof(t *testing.T) {
	w := newAssignHarness()
	if in, err := w.Recognize("pod"); err != nil || in.Key != w.spare {
		t.Errorf("recognized %+v, %v", in.Key, err)
	}
	if _, err := w.Recognize("stranger"); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("a stranger: %v", err)
	}
	w.spare.CID = "other"
	if _, err := w.Recognize("pod"); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("a pod that nobody launched: %v", err)
	}
	w.identify = nil
	if _, err := w.Recognize("pod"); !errors.Is(err, ErrUnknownInstance) {
		t.Errorf("without pods: %v", err)
	}
}
