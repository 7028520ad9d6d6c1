package controller

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Whatever changes, and however often, there is one write in writeInterval in the long run,
// apart from decisions; and whatever has changed is written before long.
func TestWritesKeepTheirPace(t *testing.T) {
	const length, step = time.Hour, 250 * time.Millisecond
	rapid.Check(t, func(t *rapid.T) {
		often := rapid.SampledFrom([]time.Duration{step, time.Second, 30 * time.Second, 5 * time.Minute})
		changes := map[urgency]time.Duration{counts: often.Draw(t, "counts change"), conditions: often.Draw(t, "conditions change")}
		objects := rapid.IntRange(1, 5).Draw(t, "objects")
		var p pace
		written := make([]time.Time, objects)
		pending := make(map[urgency]time.Time)
		n := 0
		for at := now; at.Before(now.Add(length)); at = at.Add(step) {
			for as, every := range changes {
				if at.Sub(now)%every == 0 && pending[as].IsZero() {
					pending[as] = at
				}
			}
			before := p
			for as, since := range pending {
				if since.IsZero() || before.delay(at, written[0], as) > 0 {
					continue
				}
				if late := at.Sub(since); late > maxAhead+time.Duration(objects+1)*writeInterval {
					t.Fatalf("what changed as %d was written after %v", as, late)
				}
				for i := range objects {
					written[i] = at
					p, n = p.spend(at, as), n+1
					if as == conditions {
						break // they are those of one object
					}
				}
				pending[as] = time.Time{}
			}
		}
		most := int(length/writeInterval) + int(maxAhead/writeInterval) + 2*objects + 1
		if n > most {
			t.Fatalf("%d writes in %v, at most %d are allowed", n, length, most)
		}
	})
}

func TestDecisionsNeverWait(t *testing.T) {
	var p pace
	for range 1000 {
		p = p.spend(now, decisions)
		if p.delay(now, now, decisions) != 0 {
			t.Fatal("a decision waits")
		}
	}
	// However many there were, counts follow soon, and a condition at once.
	if p.delay(now, now.Add(-time.Minute), counts) != writeInterval || p.delay(now, now.Add(-time.Minute), conditions) != 0 {
		t.Errorf("after decisions counts wait for %v, conditions for %v", p.delay(now, now.Add(-time.Minute), counts), p.delay(now, now.Add(-time.Minute), conditions))
	}
}

// Otherwise those that are looked at last would never be written, while others change.
func TestCountsOfAFunctionAreWrittenTogether(t *testing.T) {
	in := changed(updated(nil), func(in *input) {
		in.now = now.Add(time.Hour)
		in.written = writes{pace: pace{}.spend(now.Add(time.Hour-writeInterval), counts)}
		in.units["f-00003"] = facts{generation: 4, created: 6, creating: 1, started: true}
		in.units["f-00004"] = facts{generation: 4, creating: 5}
	})
	out := plan(in)
	if len(out.revisions) != 1 || len(out.scales) != 2 || out.status == nil {
		t.Fatalf("written are %d statuses and %d scales of revisions, and the function's %v", len(out.revisions), len(out.scales), out.status)
	}
	if want := (v1alpha1.InstanceCounts{Ready: 6, Desired: 12}); out.status.Instances != want {
		t.Errorf("instances %+v, want %+v", out.status.Instances, want)
	}
	if out.scales[0].Spec.Instances != 7 || out.scales[0].Status.Instances.Ready != 6 {
		t.Errorf("scale %d of %d", out.scales[0].Status.Instances.Ready, out.scales[0].Spec.Instances)
	}
	if wait := out.pace.delay(in.now, time.Time{}, counts); wait != 4*writeInterval {
		t.Errorf("the next ones may follow in %v, want one write in %v", wait, writeInterval)
	}
}
