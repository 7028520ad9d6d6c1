package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

var (
	noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	key  = invocation.FunctionKey{Namespace: "default", Name: "hello"}
)

func at(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }

// callLogHarness is a data folder with a journal.
type callLogHarness struct {
	*testing.T
	*callLog
	last byte
}

// nothingRuns is a driver whose instances have all ended.
func nothingRuns(invocation.FunctionKey, invocation.CID) (int64, bool) { return 0, false }

func newCallLogHarness(t *testing.T) *callLogHarness { return newCallLogHarnessIn(t, t.TempDir()) }

func newCallLogHarnessIn(t *testing.T, dataDir string) *callLogHarness {
	w := &callLogHarness{T: t, callLog: newCallLog(dataDir, nothingRuns)}
	if err := os.MkdirAll(instancelog.Dir(w.dataDir, key), 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// says lets an instance write a line.
func (w *callLogHarness) says(cid invocation.CID, text string) {
	w.Helper()
	f, err := os.OpenFile(w.file(cid), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, text)
}

func (w *callLogHarness) file(cid invocation.CID) string {
	return filepath.Join(instancelog.Dir(w.dataDir, key), instancelog.FunctionFile(cid))
}

// ended notes a call that an instance had from one time to another.
func (w *callLogHarness) ended(cid invocation.CID, from, to int) invocation.ID {
	w.last++
	a := invocation.Record{ID: invocation.ID{w.last}, Function: key, CID: cid, Claimed: at(from), Ended: at(to)}
	w.Add(a)
	return a.ID
}

// tells checks what a call's lines are, and returns its notes.
func (w *callLogHarness) tells(id invocation.ID, want ...string) string {
	w.Helper()
	story, known := w.LookUp(id)
	if !known || story.Record.ID != id {
		w.Fatalf("invocation %v: known %t, %+v", id, known, story)
	}
	var got []string
	for _, line := range story.Lines {
		got = append(got, line.Text)
	}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		w.Errorf("the lines are %q, want %q", got, want)
	}
	return strings.Join(story.Notes, "\n")
}

func TestACallHasTheLinesSinceTheOneBefore(t *testing.T) {
	w := newCallLogHarness(t)
	w.says("a", "starting")
	w.says("a", "one")
	first := w.ended("a", 0, 10)
	w.says("b", "another")
	other := w.ended("b", 5, 15)
	w.says("a", "two")
	w.says("a", "two again")
	second := w.ended("a", 20, 30)
	silent := w.ended("a", 30, 40)
	w.says("a", "later")
	w.tells(first, "starting", "one")
	w.tells(second, "two", "two again")
	w.tells(other, "another")
	if notes := w.tells(silent); notes != "" {
		t.Errorf("notes: %s", notes)
	}
}

func TestCallsAtTheSameTimeShareTheirLines(t *testing.T) {
	w := newCallLogHarness(t)
	w.says("a", "before")
	w.ended("a", 0, 10)
	w.says("a", "x1")
	w.says("a", "y1")
	x := w.ended("a", 20, 40)
	w.says("a", "y2")
	y := w.ended("a", 30, 50)
	w.says("a", "z")
	z := w.ended("a", 50, 60)
	for id, want := range map[invocation.ID][]string{x: {"x1", "y1"}, y: {"x1", "y1", "y2"}} {
		if notes := w.tells(id, want...); !strings.Contains(notes, "ran 1 other calls at the same time") {
			t.Errorf("notes: %q", notes)
		}
	}
	w.tells(z, "z")
}

func TestTheLogOfARunningInstanceIsNotLookedUp(t *testing.T) {
	w := newCallLogHarness(t)
	w.says("a", "one")
	w.says("a", "while it answered")
	w.sizeOf = func(function invocation.FunctionKey, cid invocation.CID) (int64, bool) {
		return int64(len("one\n")), function == key && cid == "a"
	}
	w.tells(w.ended("a", 0, 10), "one")
}

func TestACallWithoutAnInstanceHasNoLines(t *testing.T) {
	w := newCallLogHarness(t)
	if notes := w.tells(w.ended("", 0, 0)); notes != "" {
		t.Errorf("notes: %s", notes)
	}
}

func TestALogThatIsGoneIsSaidToBe(t *testing.T) {
	w := newCallLogHarness(t)
	w.says("a", "one")
	id := w.ended("a", 0, 10)
	if err := os.Remove(w.file("a")); err != nil {
		t.Fatal(err)
	}
	if notes := w.tells(id); !strings.Contains(notes, "instance a cannot be read") {
		t.Errorf("notes: %q", notes)
	}
}

func TestOfVeryMuchTextTheLastIsTold(t *testing.T) {
	w := newCallLogHarness(t)
	w.says("a", strings.Repeat("x", maxText))
	w.says("a", "the end")
	id := w.ended("a", 0, 10)
	story, _ := w.LookUp(id)
	if n := len(story.Lines); n != 2 || story.Lines[1].Text != "the end" || len(story.Notes) != 1 {
		t.Errorf("%d lines, notes %v", n, story.Notes)
	}
}

func TestTheOldestCallsAreForgotten(t *testing.T) {
	j := newCallLog(t.TempDir(), nothingRuns)
	id := func(n int) invocation.ID { return invocation.ID{byte(n >> 8), byte(n)} }
	const calls = maxCalls + 100
	for n := range calls {
		j.Add(invocation.Record{ID: id(n)})
	}
	for n := range calls {
		if _, known := j.LookUp(id(n)); known != (n >= calls-maxCalls) {
			t.Fatalf("of call %d of %d it is %t that it is known", n, calls, known)
		}
	}
	if len(j.ring) != maxCalls {
		t.Errorf("%d calls are remembered", len(j.ring))
	}
}

func TestTheLinesOfForgottenCallsAreNotAnothers(t *testing.T) {
	w := newCallLogHarness(t)
	quick := invocation.FunctionKey{Namespace: "default", Name: "quick"}
	forget := func(calls int) {
		for range calls {
			w.Add(invocation.Record{ID: invocation.ID{255}, Function: quick, CID: "q", Ended: at(1)})
		}
	}
	w.says("a", "starting")
	w.says("a", "one")
	w.ended("a", 0, 10)
	w.says("a", "two")
	second := w.ended("a", 20, 30)
	w.says("b", "long")
	w.ended("b", 0, 50)
	w.says("b", "beside it")
	beside := w.ended("b", 40, 60)
	forget(maxCalls - 3)
	if notes := w.tells(second, "two"); notes != "" {
		t.Errorf("notes: %s", notes)
	}
	forget(2)
	if notes := w.tells(beside, "long", "beside it"); !strings.Contains(notes, "lines of earlier calls may be among these") {
		t.Errorf("notes: %q", notes)
	}
	forget(1)
	if len(w.instances) != 1 {
		t.Errorf("instances without calls are kept: %v", w.instances)
	}
}

// What every call of a local Windlass pays for being remembered, without the look at its log, which
// BenchmarkLogSize of the driver has.
func BenchmarkNote(b *testing.B) {
	j := newCallLog(b.TempDir(), func(invocation.FunctionKey, invocation.CID) (int64, bool) { return 5, true })
	account := invocation.Record{Function: key, CID: "a", Claimed: noon, Ended: at(1)}
	for b.Loop() {
		j.Add(account)
	}
}
