package coordinator

import (
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

func TestThoseWhoStartTogetherShareFromTheStart(t *testing.T) {
	w := newHarness(t)
	w.start("a")
	w.run(300 * time.Millisecond)
	w.start("b")
	w.start("c")
	w.run(time.Second)
	w.wantRest()
	if got := w.moved(); got != ownership.Slots {
		t.Errorf("slots were given %d times, want each once", got)
	}
}

func TestOneAloneClaimsAfterItHasSettled(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(settle)
	if a.Holds() != 0 || a.Complete() {
		t.Errorf("it holds %d slots before it has settled", a.Holds())
	}
	w.run(2 * step)
	if a.Holds() != ownership.Slots || !a.Complete() {
		t.Errorf("it holds %d slots, want all", a.Holds())
	}
	if got := w.store.Writes(); got != 1+9 {
		t.Errorf("it wrote %d times, want its member and 9 batches", got)
	}
}

func TestANewMemberIsGivenItsShareWithoutAGap(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(time.Second)
	w.gapless = true
	w.resetMoves()
	b := w.start("b")
	w.run(trustAfter)
	if b.Holds() != 0 {
		t.Errorf("it was given %d slots at once", b.Holds())
	}
	w.run(time.Second)
	if got := b.Holds(); got == 0 || got > 2*idleHandoffs {
		t.Errorf("it was given %d slots in a second, want at most %d", got, 2*idleHandoffs)
	}
	w.run(20 * time.Second)
	w.wantRest()
	if got := w.moved(); got != b.Holds() || a.Holds()+got != ownership.Slots {
		t.Errorf("%d moves, holders %s: want each slot of b to move once", got, w.holds())
	}
}

func TestBusySlotsAreGivenSlowly(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	a.busy = func(s ownership.Slot) bool { return s < 512 }
	w.run(time.Second)
	b := w.start("b")
	w.run(trustAfter + time.Second/2)
	busy := func() (n int) {
		for slot := range ownership.Slot(512) {
			if b.Epoch(slot) != 0 {
				n++
			}
		}
		return n
	}
	if busy() != busyHandoffs || b.Holds() != busyHandoffs+idleHandoffs {
		t.Errorf("b was given %d slots, %d of them busy, want %d and %d", b.Holds(), busy(), busyHandoffs+idleHandoffs, busyHandoffs)
	}
	w.run(70 * time.Second)
	w.wantRest()
}

func TestAMemberThatFlapsGetsNothing(t *testing.T) {
	w := newHarness(t)
	w.start("a")
	w.run(time.Second)
	w.resetMoves()
	for range 10 {
		b := w.start("b")
		w.run(trustAfter - 10*step)
		w.stop(b)
		w.all = w.all[:1]
		w.run(time.Second)
	}
	if w.moved() != 0 {
		t.Errorf("it was given slots %d times", w.moved())
	}
}

func TestOneThatStopsHandsOverWithoutAGap(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.start("b")
	w.start("c")
	w.run(time.Second)
	w.gapless = true
	w.resetMoves()
	had, before := a.Holds(), w.store.Writes()
	w.stop(a)
	if a.Holds() != 0 || w.moved() != had {
		t.Errorf("it holds %d slots, and %d of %d moved", a.Holds(), w.moved(), had)
	}
	// One for the member, and one for each begun batch of each receiver.
	if got := w.store.Writes() - before; got > 1+2*(had/2/MaxOps+2) {
		t.Errorf("it took %d writes", got)
	}
	w.run(time.Second)
	w.wantRest()
}

func TestNobodyGivesToOneThatIsDraining(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	b := w.start("b")
	w.start("c")
	w.run(time.Second)
	// b is about to stop, and has not given anything yet.
	b.Drain()
	txn, _ := b.Next(w.now)
	b.Answered(w.now, txn, w.store.Commit(txn))
	had := b.Holds()
	w.deliver(a)
	w.stop(a)
	if b.Holds() != had {
		t.Errorf("b holds %d slots, want no more than before, %d", b.Holds(), had)
	}
	w.stop(b)
	w.run(time.Second)
	w.wantRest()
}

func TestTheLastOneLeavesKeysToTheNext(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(time.Second)
	w.stop(a)
	if l := w.store.List(); len(l.Entries) != 0 {
		t.Errorf("%d keys are left", len(l.Entries))
	}
	w.start("b")
	w.run(time.Second)
	w.wantRest()
}

func TestTheSlotsOfOneThatDiesAreClaimedInTheirOrder(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.start("b")
	w.start("c")
	w.run(time.Second)
	w.resetMoves()
	had := a.Holds()
	a.ended = true
	a.ReleaseAll()
	w.run(ttl + ownership.LastOwnerLead + time.Second)
	w.wantRest()
	if w.moved() != had {
		t.Errorf("%d slots moved, want the %d of a", w.moved(), had)
	}
}

func TestTheNextInOrderStepsInForOneThatDoesNotClaim(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	b := w.start("b")
	c := w.start("c")
	w.run(time.Second)
	// b is a member still, but hears nothing.
	b.cut = true
	w.store.End(a.Lease())
	a.ended = true
	a.ReleaseAll()
	w.run(ownership.LastOwnerLead + ownership.ClaimDelayStep + 3*step)
	for i := range ownership.Slots {
		slot := ownership.Slot(i)
		if e := w.store.Get(Key{Slot: slot}); e.Absent || e.Value.ID == "a" {
			t.Fatalf("slot %d: %+v, want b's or c's", slot, e)
		}
	}
	if c.Holds() <= ownership.Slots/2 {
		t.Errorf("c holds %d, want more than its share", c.Holds())
	}
}

func TestAStoreThatIsAwayForLongMovesNothing(t *testing.T) {
	for _, away := range []time.Duration{time.Second, ttl, 60 * time.Second} {
		w := newHarness(t)
		a := w.start("a")
		w.start("b")
		w.start("c")
		w.run(time.Second)
		w.resetMoves()
		w.away = true
		w.run(away)
		since, unconfirmed := a.Unconfirmed(w.now)
		if want := away >= ttl; unconfirmed != want {
			t.Errorf("after %v: orphan is %v, want %v", away, unconfirmed, want)
		}
		if unconfirmed && w.now.Sub(since) > away-ttl*2/3 {
			t.Errorf("after %v it is an orphan since %v", away, w.now.Sub(since))
		}
		// b and c are back some time before a.
		w.away, a.cut = false, true
		w.run(returnGrace - time.Second)
		a.cut = false
		w.run(20 * time.Second)
		if _, unconfirmed := a.Unconfirmed(w.now); unconfirmed {
			t.Errorf("after %v: a is an orphan though the store is back", away)
		}
		w.wantRest()
		if w.moved() != 0 {
			t.Errorf("after %v %d slots moved", away, w.moved())
		}
	}
}

func TestAHandoffThatWasNeverSeenIsClaimedOnceItsOwnerIsBack(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(time.Second)
	b := w.start("b")
	w.run(trustAfter - time.Second)
	b.cut = true
	w.run(2 * time.Second)
	if a.Holds() == ownership.Slots || b.Holds() != 0 {
		t.Fatalf("holders %s: want that b has not heard of what a gave it", w.holds())
	}
	w.away = true
	w.store.End(b.Lease())
	w.run(ttl)
	w.away, b.cut = false, false
	w.run(ownership.LastOwnerLead + time.Second)
	if !a.Complete() {
		t.Errorf("holders %s: slots have no owner %v after all were back", w.holds(), ownership.LastOwnerLead+time.Second)
	}
}

func TestAGiverThatHasLeftIsNotWaitedFor(t *testing.T) {
	for name, tt := range map[string]struct {
		reported func(before, handoff ownership.Owner) ownership.Owner
		soon     bool
	}{
		"nobody tells of the handoff": {func(_, _ ownership.Owner) ownership.Owner { return ownership.Owner{} }, false},
		"the giver tells of it":       {func(_, handoff ownership.Owner) ownership.Owner { return handoff }, true},
		"others tell of a time past":  {func(before, _ ownership.Owner) ownership.Owner { return before }, false},
		"others name somebody else": {func(_, handoff ownership.Owner) ownership.Owner {
			return ownership.Owner{ID: "x", Addr: "x:1", Epoch: handoff.Epoch + 1}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			a, b := w.start("a"), w.start("b")
			w.run(time.Second)
			slot := ownership.Slot(0)
			for a.Epoch(slot) == 0 {
				slot++
			}
			before, _ := b.View().Owner(slot)
			// b stands still, is given everything, and its lease ends before it goes on.
			b.ended = true
			w.stop(a)
			handoff := w.store.Get(Key{Slot: slot})
			w.store.End(b.Lease())
			w.store.Compact(w.store.Revision())
			w.now = w.now.Add(ttl)
			b.ended = false
			b.Interrupted()
			w.run(2 * step)
			reported := tt.reported(before, ownership.Owner{ID: handoff.Value.ID, Addr: handoff.Value.Addr, Epoch: uint64(handoff.Revision)})
			if reported.ID != "" {
				b.reported = map[ownership.Slot]ownership.Owner{slot: reported}
			}
			w.run(recheckOwnerAfter + 2*step)
			if soon := b.Epoch(slot) != 0; soon != tt.soon {
				t.Errorf("b holds the slot soon: %v, want %v", soon, tt.soon)
			}
			w.run(returnGrace + ownership.LastOwnerLead)
			if b.Epoch(slot) == 0 {
				t.Errorf("nobody holds the slot in the end")
			}
		})
	}
}

func TestAnUnconfirmedOwnerClaimsNothing(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(time.Second)
	w.now = w.now.Add(ttl)
	a.Seen(w.now, Entry{Key: Key{Slot: 7}, Revision: w.store.Revision() + 1, Absent: true})
	if txn, due := a.Next(w.now); due {
		t.Errorf("it tries %+v", txn)
	}
	if a.Epoch(7) == 0 {
		t.Error("it let go of a slot that nobody else has")
	}
}

func TestALeaseThatIsRevokedMovesNothing(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.start("b")
	w.run(time.Second)
	w.resetMoves()
	w.store.End(a.Lease())
	w.run(10 * time.Second)
	w.wantRest()
	if w.moved() != 0 {
		t.Errorf("%d slots moved, want none: who holds them comes first", w.moved())
	}
}

func TestWhatIsDoneToKeysByHandIsRepaired(t *testing.T) {
	tests := map[string]func(w *harness, a *node, k Key){
		"deleted":                  func(w *harness, _ *node, k Key) { w.store.Delete(k) },
		"names nobody":             func(w *harness, _ *node, k Key) { w.put(k, "x", 0) },
		"names another":            func(w *harness, _ *node, k Key) { w.put(k, "b", 0) },
		"names it, without lease":  func(w *harness, _ *node, k Key) { w.put(k, "a", 0) },
		"another under its lease":  func(w *harness, a *node, k Key) { w.put(k, "b", a.Lease()) },
		"is not readable":          func(w *harness, _ *node, k Key) { w.put(k, "", 0) },
		"names it, under no lease": func(w *harness, _ *node, k Key) { w.put(k, "a", w.store.Grant(w.now, time.Hour)) },
	}
	for name, tamper := range tests {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t)
			a := w.start("a")
			w.start("b")
			w.run(time.Second)
			for slot := range ownership.Slot(64) {
				if a.Epoch(slot) != 0 {
					tamper(w, a, Key{Slot: slot})
				}
			}
			w.run(time.Second)
			w.wantRest()
		})
	}
}

func (w *harness) put(k Key, id string, lease Lease) {
	op := Op{Key: k, If: Always, Lease: lease}
	if id != "" {
		op.Value = Value{ID: id, Addr: id + ":1"}
	}
	w.store.Commit(Txn{Ops: []Op{op}})
}

func TestAMembersKeyIsRepaired(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.start("b")
	w.run(time.Second)
	w.resetMoves()
	for _, tamper := range []func(){
		func() { w.store.Delete(Key{Member: "a"}) },
		func() { w.put(Key{Member: "a"}, "x", 0) },
		func() { w.put(Key{Member: "a"}, "", a.Lease()) },
	} {
		tamper()
		w.run(time.Second)
		e := w.store.Get(Key{Member: "a"})
		if e.Value != a.config.Self || e.Lease != a.Lease() {
			t.Errorf("the member's key is %+v", e)
		}
	}
	if w.moved() != 0 {
		t.Errorf("%d slots moved", w.moved())
	}
}

func TestOfTwoProcessesOfOneNameTheLaterHolds(t *testing.T) {
	w := newHarness(t)
	earlier := w.start("a")
	w.start("b")
	w.run(time.Second)
	had := earlier.Holds()
	later := w.start("a")
	w.run(time.Second)
	if earlier.Holds() != 0 || later.Holds() != had {
		t.Fatalf("the earlier one holds %d, the later %d, want 0 and %d", earlier.Holds(), later.Holds(), had)
	}
	w.resetMoves()
	writes := w.store.Writes()
	w.run(30 * time.Second)
	if w.moved() != 0 || w.store.Writes() != writes {
		t.Errorf("they fight: %d slots moved, %d writes", w.moved(), w.store.Writes()-writes)
	}
	// The earlier one steps in when the later one has gone.
	w.stop(later)
	w.all = w.all[:2]
	w.run(30 * time.Second)
	w.wantRest()
}

func TestAStoreThatIsWipedOrRestoredIsFilledAgain(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.start("b")
	w.run(time.Second)
	backup := w.store.Clone()
	w.start("c")
	w.run(20 * time.Second)
	tests := []struct {
		name  string
		store *Store
	}{{"wiped", NewStore()}, {"restored", backup}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w.t = t
			// Epochs of two histories may be equal for a moment.
			w.forked = true
			w.store.Restore(tt.store)
			w.run(5 * time.Second)
			w.forked = false
			if a.Holds() == 0 {
				t.Error("a let go of everything")
			}
			w.run(30 * time.Second)
			w.wantRest()
		})
	}
}

func TestAHandoffToALeaseThatEndedIsNotTriedForEver(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(time.Second)
	b := w.start("b")
	w.run(trustAfter - 5*step)
	a.lag = time.Hour // a does not hear that b's lease ends
	w.run(time.Second)
	// Whatever a lists, b's key is there.
	before := w.store.List()
	w.store.End(b.Lease())
	b.cut = true
	tries, lists := 0, 0
	for range 10 {
		w.now = w.now.Add(time.Second)
		a.Renewed(w.now)
		if !a.Following() {
			lists++
			a.Listed(w.now, before)
		}
		for {
			txn, due := a.Next(w.now)
			if !due {
				break
			}
			tries++
			a.Answered(w.now, txn, w.store.Commit(txn))
		}
	}
	if tries != 1 {
		t.Errorf("it tried %d handoffs, want one that fails", tries)
	}
	if lists != 1 {
		t.Errorf("it listed the keys %d times, want once, to see what else it does not know", lists)
	}
	if a.Holds() == 0 {
		t.Error("it let go of what nobody got")
	}
}

func TestNobodyGivesWhatIsNotItsOwnAnyMore(t *testing.T) {
	w := newHarness(t)
	a := w.start("a")
	w.run(time.Second)
	w.start("b")
	w.run(trustAfter - 5*step)
	// Somebody else has all slots by now, of which a has not heard.
	other := w.store.Grant(w.now, time.Hour)
	for slot := range ownership.Slot(ownership.Slots) {
		w.put(Key{Slot: slot}, "x", other)
	}
	for _, at := range []time.Duration{0, 10 * step} {
		w.now = w.now.Add(at)
		for {
			txn, due := a.Next(w.now)
			if !due {
				break
			}
			a.Answered(w.now, txn, w.store.Commit(txn))
		}
	}
	if a.Holds() == ownership.Slots {
		t.Error("a has not tried to give anything, so nothing was tested")
	}
	for slot := range ownership.Slot(ownership.Slots) {
		if e := w.store.Get(Key{Slot: slot}); e.Value.ID != "x" {
			t.Fatalf("slot %d was given to %s", slot, e.Value.ID)
		}
	}
}
