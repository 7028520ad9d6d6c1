package decisionlog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

var (
	noon   = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	params = autoscaler.Params{Tick: 100 * time.Millisecond, StaleAfter: 100 * time.Millisecond}
)

func busy() autoscaler.Snapshot {
	return autoscaler.Snapshot{Arrived: 12, Stale: 4, Created: 2, Busy: 2, Creating: 2, Room: -1, MeanExecution: 50 * time.Millisecond}
}

func TestAnEntryIsExplained(t *testing.T) {
	overload := func(create int) autoscaler.Decision {
		return autoscaler.Decision{Create: create, Why: autoscaler.ReasonOverload, Required: 7, Rate: 40, Horizon: 500 * time.Millisecond}
	}
	const why = "more calls come than all instances can run; 2 instances, 2 busy, 2 starting, 12 waiting (4 for more than 100 ms); " +
		"40 calls/s × 50 ms need 7 instances within 500 ms"
	failing := busy()
	failing.Failing = true
	for name, tc := range map[string]struct {
		e         Entry
		what, why string
	}{
		"some placed, some not": {
			Entry{Snapshot: busy(), Decision: overload(5), Outcome: Outcome{Placed: Place([]string{"b", "a", "a"}), NoRoom: "node c: 0m of 400m CPU free"}},
			"+3 of 5 instances (Overload)", why + " → node a (2), node b; 2 not placed: node c: 0m of 400m CPU free",
		},
		"all placed": {
			Entry{Snapshot: busy(), Decision: overload(1), Outcome: Outcome{Placed: Place([]string{"b"})}},
			"+1 instance (Overload)", why + " → node b",
		},
		"put off": {
			Entry{Snapshot: busy(), Decision: overload(2)}, "+0 of 2 instances (Overload)",
			why + "; 2 put off to a later tick, since instances are created at a bounded rate and in turns of the namespaces",
		},
		"held back": {
			Entry{Snapshot: failing, Decision: overload(2)}, "+0 of 2 instances (Overload)",
			why + "; the last start failed; 2 held back until an instance starts",
		},
		"held back by the cluster": {
			Entry{Snapshot: busy(), Decision: overload(2), Outcome: Outcome{HeldBack: HeldBack{Reason: "the Kubernetes API cannot be asked", For: time.Second}}},
			"+0 of 2 instances (Overload)", why + "; 2 held back for 1 s: the Kubernetes API cannot be asked",
		},
		"makes room": {
			Entry{Snapshot: busy(), Decision: overload(1), Outcome: Outcome{NoRoom: "there is no node", MakingRoom: true}},
			"+0 of 1 instance (Overload)", why + "; 1 not placed: there is no node; an idle instance is evicted to make room",
		},
		"cancelled": {
			Entry{Snapshot: busy(), Decision: autoscaler.Decision{Cancel: 2, Why: autoscaler.ReasonEnough}, Outcome: Outcome{Cancelled: 2}},
			"-2 instances (Enough)", "2 instances, 2 busy, 2 starting, 12 waiting (4 for more than 100 ms)",
		},
		"a floor": {
			Entry{Snapshot: autoscaler.Snapshot{Room: -1}, Decision: autoscaler.Decision{Create: 1, Why: autoscaler.ReasonMin},
				Outcome: Outcome{Placed: Place([]string{"a"}), Floor: Floor{Instances: 1, Of: FloorSchedule}}},
			"+1 instance (BelowMin)", "fewer instances than the minimum; 0 instances, 0 waiting; scaling.windows asks for at least 1 → node a",
		},
		"a proof": {
			Entry{Snapshot: autoscaler.Snapshot{Room: -1}, Decision: autoscaler.Decision{Create: 1, Why: autoscaler.ReasonProof},
				Outcome: Outcome{Placed: Place([]string{"a"}), Floor: Floor{Instances: 1, Of: FloorProof}}},
			"+1 instance (ProveRevision)",
			"calls go to a new revision when an instance of it has started; 0 instances, 0 waiting; rollout.verify asks for at least 1 → node a",
		},
		"nothing": {
			Entry{Snapshot: autoscaler.Snapshot{Room: -1, Created: 1}, Decision: autoscaler.Decision{Why: autoscaler.ReasonNoDemand}},
			"no change (NoDemand)", "1 instance, 0 busy, 0 waiting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.e.Params, tc.e.Outcome.Wanted = params, tc.e.Decision.Create
			if diff := cmp.Diff([]string{tc.what, tc.why}, []string{tc.e.Summary(), tc.e.Explain()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyNodesAreSummedUp(t *testing.T) {
	var nodes []string
	for n := range 20 {
		nodes = append(nodes, fmt.Sprintf("n%02d", n))
	}
	b := NewLog(DefaultBounds())
	b.Add("f", Entry{Snapshot: busy(), Decision: autoscaler.Decision{Create: 30, Why: autoscaler.ReasonOverload},
		Outcome: Outcome{Wanted: 30, Placed: Place(nodes), NoRoom: "20 nodes: 20 short of CPU"}})
	text := b.Last("f", 1)[0].Explain()
	for _, want := range []string{"node n05 and 14 more nodes;", "10 not placed: 20 nodes: 20 short of CPU"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
}

// model keeps everything that was ever added, and looks for what counts afterwards.
type model map[string][]Entry

func (w model) add(uid string, e Entry) {
	kept := w[uid]
	e.Until, e.Times, e.Number = e.At, 1, 1
	if len(kept) == 0 {
		if e.Decision.Why != autoscaler.ReasonNoDemand || e.Outcome.Launched() > 0 {
			w[uid] = []Entry{e}
		}
		return
	}
	last := &kept[len(kept)-1]
	e.Number = last.Number + 1
	same := e.Decision.Why == last.Decision.Why && (e.Outcome.Wanted > 0) == (last.Outcome.Wanted > 0) &&
		(e.Outcome.NoRoom == "") == (last.Outcome.NoRoom == "")
	if same && e.Outcome.Launched() == 0 && last.Outcome.Launched() == 0 {
		e.Number, e.At, e.Times = last.Number, last.At, last.Times+1
		*last = e
		return
	}
	w[uid] = append(kept, e)
}

func TestALogIsBoundedAndKeepsTheLast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bounds := Bounds{PerFunction: rapid.IntRange(1, 5).Draw(t, "per function")}
		bounds.Total = rapid.IntRange(bounds.PerFunction, 12).Draw(t, "total")
		b, oracle := NewLog(bounds), model{}
		uids := []string{"a", "b", "c", "d"}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			uid := rapid.SampledFrom(uids).Draw(t, "uid")
			if rapid.IntRange(0, 15).Draw(t, "forget") == 0 {
				b.Remove(uid)
				delete(oracle, uid)
				continue
			}
			e := Entry{At: noon.Add(time.Duration(i) * params.Tick), Params: params, Snapshot: busy()}
			e.Decision.Why = rapid.SampledFrom([]autoscaler.Reason{autoscaler.ReasonNoDemand, autoscaler.ReasonEnough, autoscaler.ReasonOverload}).Draw(t, "why")
			if e.Decision.Why == autoscaler.ReasonOverload {
				e.Outcome.Wanted = rapid.IntRange(1, 3).Draw(t, "wanted")
				e.Outcome.Placed = Place(rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y"}), 0, e.Outcome.Wanted).Draw(t, "nodes"))
				e.Outcome.NoRoom = rapid.SampledFrom([]string{"", "full"}).Draw(t, "no room")
			}
			before := b.Last(uid, 1)
			b.Add(uid, e)
			oracle.add(uid, e)
			// What was forgotten for want of room begins again: the twin must too.
			if len(before) == 0 {
				kept := oracle[uid]
				oracle[uid] = nil
				if n := len(kept); n > 0 && kept[n-1].Until.Equal(e.At) {
					oracle.add(uid, e)
				}
			}
			check(t, b, bounds, oracle, uid)
		}
	})
}

func check(t *rapid.T, b *Log, bounds Bounds, oracle model, added string) {
	total := 0
	for uid, all := range oracle {
		got := b.Last(uid, bounds.PerFunction+1)
		total += len(got)
		if len(got) > bounds.PerFunction {
			t.Fatalf("%d entries of %s are kept, %d may be", len(got), uid, bounds.PerFunction)
		}
		if uid == added && len(all) > 0 && len(got) == 0 {
			t.Fatalf("nothing is left of %s, which was just decided on", uid)
		}
		want := all[len(all)-min(len(all), len(got)):]
		if diff := cmp.Diff(slices.Clone(want), got); len(got) > 0 && diff != "" {
			t.Fatalf("%s (-want +got):\n%s", uid, diff)
		}
	}
	if total != b.total || total > bounds.Total || len(b.byFunction) != b.recent.Len() {
		t.Fatalf("%d entries are kept, %d counted, %d may be; %d chapters in %d places", total, b.total, bounds.Total, len(b.byFunction), b.recent.Len())
	}
}

func TestWhoWasDecidedOnLongestAgoLosesFirst(t *testing.T) {
	b := NewLog(Bounds{PerFunction: 3, Total: 3})
	one := func(why autoscaler.Reason) Entry { return Entry{Decision: autoscaler.Decision{Why: why}} }
	b.Add("old", one(autoscaler.ReasonFirst))
	b.Add("old", one(autoscaler.ReasonEnough))
	b.Add("new", one(autoscaler.ReasonFirst))
	b.Add("old", one(autoscaler.ReasonEnough)) // only repeats, and counts as recent
	b.Add("newest", one(autoscaler.ReasonFirst))
	if o, n, nn := len(b.Last("old", 9)), len(b.Last("new", 9)), len(b.Last("newest", 9)); o != 2 || n != 0 || nn != 1 {
		t.Errorf("%d, %d and %d entries are kept, want 2, 0 and 1", o, n, nn)
	}
	if times := b.Last("old", 1)[0].Times; times != 2 {
		t.Errorf("it was decided %d times, want 2", times)
	}
}

func TestWhoWasDecidedOnLatelyIsKnown(t *testing.T) {
	b := NewLog(DefaultBounds())
	add := func(uid string, second int) {
		b.Add(uid, Entry{At: noon.Add(time.Duration(second) * time.Second), Decision: autoscaler.Decision{Why: autoscaler.ReasonFirst}})
	}
	for i, uid := range []string{"a", "b", "c", "a"} { // the second of a only repeats
		add(uid, i)
	}
	for _, tc := range []struct {
		since, n, more int
		want           []string
	}{
		{0, 9, 0, []string{"a", "c", "b"}},
		{0, 2, 1, []string{"a", "c"}},
		{2, 9, 0, []string{"a", "c"}},
		{2, 1, 1, []string{"a"}},
		{4, 9, 0, nil},
	} {
		got, more := b.Recent(noon.Add(time.Duration(tc.since)*time.Second), tc.n)
		if !slices.Equal(got, tc.want) || more != tc.more {
			t.Errorf("since second %d, at most %d: %q and %d more, want %q and %d more", tc.since, tc.n, got, more, tc.want, tc.more)
		}
	}
}

func TestAReportIsPlainJSON(t *testing.T) {
	b := NewLog(DefaultBounds())
	s := busy()
	s.Room = 0
	b.Add("f", Entry{At: noon, Params: params, Snapshot: s, Decision: autoscaler.Decision{Create: 2, Why: autoscaler.ReasonOverload, Required: 6},
		Outcome: Outcome{Wanted: 2, Placed: Place([]string{"a"}), NoRoom: "node b: full"}})
	reported := Report{Namespace: "team", Name: "f", Served: true, Decisions: ReportEntries(b.Last("f", 9))}
	text, err := json.Marshal(reported)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"nodes":{"a":1}`, `"noRoom":"node b: full"`, `"room":0`, `"meanExecutionSeconds":0.05`, `"what":"+1 of 2 instances (`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	var read Report
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(reported, read); diff != "" {
		t.Errorf("(-told +read):\n%s", diff)
	}
	if last, ok := read.Last(); !ok || last.Reason != "Overload" {
		t.Errorf("the last is %+v", last)
	}
}

func TestNoDecisionsAreExplained(t *testing.T) {
	clock := func(at time.Time) string { return at.Format(time.TimeOnly) }
	for want, a := range map[string]Report{
		"no decisions yet: the function has not been called":                                                  {},
		"no decisions yet: the function has not been called since the scheduler s-1 took it over at 12:00:00": {Scheduler: "s-1", ServedSince: noon},
		"no decisions yet: no change was needed since Windlass took it over at 12:00:00; 1 call, 2 instances": {
			ServedSince: noon, Calls: 1, Instances: 2},
	} {
		if got := a.NoDecisions(clock); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestALateChangeIsNotable(t *testing.T) {
	b := NewLog(DefaultBounds())
	add := func(second, launched int, why autoscaler.Reason) {
		e := Entry{At: noon.Add(time.Duration(second) * time.Second), Decision: autoscaler.Decision{Why: why}}
		e.Outcome.Wanted, e.Outcome.Placed = launched, Place(make([]string, launched))
		b.Add("f", e)
	}
	if _, known := b.Notable("f", noon); known {
		t.Error("there is an entry of a function without one")
	}
	add(0, 1, autoscaler.ReasonFirst)
	add(10, 2, autoscaler.ReasonOverload)
	add(20, 0, autoscaler.ReasonEnough)
	add(30, 0, autoscaler.ReasonNoDemand)
	for since, want := range map[int]autoscaler.Reason{0: autoscaler.ReasonOverload, 10: autoscaler.ReasonOverload, 11: autoscaler.ReasonNoDemand, 99: autoscaler.ReasonNoDemand} {
		if e, known := b.Notable("f", noon.Add(time.Duration(since)*time.Second)); !known || e.Decision.Why != want {
			t.Errorf("since second %d it is %s, want %s", since, e.Decision.Why, want)
		}
	}
}
