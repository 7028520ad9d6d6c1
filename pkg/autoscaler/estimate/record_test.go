package estimate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func units() *rapid.Generator[[]Unit] {
	mean := rapid.OneOf(rapid.Just(time.Duration(0)), rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "mean"))
	}))
	return rapid.SliceOfNDistinct(rapid.Custom(func(t *rapid.T) Unit {
		n := rapid.IntRange(0, 999).Draw(t, "n")
		return Unit{
			UID: fmt.Sprintf("u%03d", n), Function: fmt.Sprintf("f%d", n%3), Revision: fmt.Sprintf("%05d", n),
			Execution: mean.Draw(t, "execution"), Start: mean.Draw(t, "start"),
		}
	}), 0, 300, func(u Unit) string { return u.UID })
}

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := units().Draw(t, "units")
		record := RecordOf(given)
		read, err := ParseRecord(record.Encode())
		if err != nil || !slices.Equal(read, record) {
			t.Fatalf("read %v, %v; written was %v", read, err, record)
		}
		if record.Differs(read) || read.Differs(record) {
			t.Fatal("the same is worth a write")
		}
		if len(record) > MaxUnits || slices.ContainsFunc(record, func(u Unit) bool { return u.Means() == Means{} }) {
			t.Fatalf("%d units, also some of which nothing is known", len(record))
		}
	})
}

// Who writes when that is worth it has a record that says about what is so.
func TestWhatIsNotWorthAWriteIsNearlyWhatIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kept := RecordOf(units().Draw(t, "kept"))
		now := slices.Clone(kept)
		for i := range now {
			change := rapid.Float64Range(0.8, 1.2).Draw(t, "change")
			now[i].Execution = time.Duration(float64(now[i].Execution) * change)
		}
		far := func(u Unit, i int) bool {
			return 10*(u.Execution-kept[i].Execution).Abs() > kept[i].Execution || (u.Execution == 0) != (kept[i].Execution == 0)
		}
		want := false
		for i, u := range now {
			want = want || far(u, i)
		}
		if got := now.Differs(kept); got != want && !nearTolerance(now, kept) {
			t.Fatalf("worth a write: %t, want %t", got, want)
		}
		if len(kept) > 0 && (!now[1:].Differs(kept) || !kept.Differs(now[1:])) {
			t.Fatal("a unit came or went, which is worth no write")
		}
	})
}

// nearTolerance tells whether a mean has changed by just about a tenth, where rounding decides.
func nearTolerance(now, kept Record) bool {
	for i := range now {
		if (10*(now[i].Execution-kept[i].Execution).Abs() - kept[i].Execution).Abs() < 10 {
			return true
		}
	}
	return false
}

func TestAnEncodedRecordIsBounded(t *testing.T) {
	var all []Unit
	for i := range 2 * MaxUnits {
		uid := fmt.Sprintf("00000000-0000-0000-0000-%012d", i)
		all = append(all, Unit{UID: uid, Function: uid, Revision: "1000000000000", Execution: 24 * time.Hour, Start: 24 * time.Hour})
	}
	record := RecordOf(all)
	if len(record) != MaxUnits || len(record.Encode()) > 64<<10 {
		t.Errorf("%d units in %d bytes", len(record), len(record.Encode()))
	}
	if RecordOf(all).Differs(record) {
		t.Error("what does not fit makes each look a reason to write")
	}
}

func TestAUnitIsRecalledByItsOwnOrByTheLatestThatKnows(t *testing.T) {
	of := func(n int, execution, start time.Duration) Unit {
		return Unit{UID: fmt.Sprint("u", n), Function: "f", Revision: fmt.Sprintf("%05d", n), Execution: execution, Start: start}
	}
	known := []Unit{of(3, 30, 3), of(12, 0, 12), of(7, 70, 0)}
	for uid, want := range map[string]Means{
		"u3": {Execution: 30, Start: 3}, "u7": {Execution: 70, Start: 12}, "u12": {Execution: 70, Start: 12}, "u13": {Execution: 70, Start: 12},
	} {
		if got := Restore(known, uid); got != want {
			t.Errorf("%s: recalled %+v, want %+v", uid, got, want)
		}
	}
	if got := Restore(nil, "u1"); got != (Means{}) {
		t.Errorf("of nothing: %+v", got)
	}
}

func FuzzParseRecord(f *testing.F) {
	f.Add([]byte(`[{"uid":"a","function":"f","revision":"1","executionNs":-5,"startNs":7}]`))
	f.Add([]byte(`{"uid":3}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		record, err := ParseRecord(text)
		for _, u := range record {
			if u.Execution < 0 || u.Start < 0 {
				t.Errorf("it believes %+v", u)
			}
		}
		if err != nil && record != nil {
			t.Errorf("%v, and yet %d units", err, len(record))
		}
	})
}
