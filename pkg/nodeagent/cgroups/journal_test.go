package cgroups

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openJournal(t *testing.T, path string) *Journal {
	t.Helper()
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// lowPod makes a folder that looks like the group of a low pod.
func lowPod(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	write(t, filepath.Join(dir, idleFile), "1\n")
	write(t, filepath.Join(dir, v1.weight), "3\n")
	return dir
}

func stateOf(dir string) string {
	return strings.TrimSpace(readFile(filepath.Join(dir, idleFile))) + " " + strings.TrimSpace(readFile(filepath.Join(dir, v1.weight)))
}

func TestAJournalIsRestoredAtTheStart(t *testing.T) {
	low, normal, foreign, torn := lowPod(t, "pod1"), lowPod(t, "pod2"), lowPod(t, "kubepods"), lowPod(t, "pod3")
	path := filepath.Join(t.TempDir(), "weights")
	write(t, path, fmt.Sprintf("low 512 %q\nlow 7 %q\nnormal %q\nlow 9 %q\nlow 9 %q\nlow x %q\nlow 8 \"%s", low, normal, normal, foreign, "/gone/pod9", low, torn))
	j := openJournal(t, path)
	for dir, want := range map[string]string{low: "0 512", normal: "1 3", foreign: "1 3", torn: "1 3"} {
		if got := stateOf(dir); got != want {
			t.Errorf("%s is %q, want %q", filepath.Base(dir), got, want)
		}
	}
	if len(j.Low()) > 0 || readFile(path) != "" {
		t.Errorf("the journal still has %v: %q", j.Low(), readFile(path))
	}
}

func TestWhatCannotBeRestoredStaysInTheJournal(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pod1")
	write(t, filepath.Join(dir, idleFile, "a folder"), "") // cannot be written
	path := filepath.Join(t.TempDir(), "weights")
	write(t, path, fmt.Sprintf("low 512 %q\n", dir))
	j, err := OpenJournal(path)
	if j == nil || err == nil || !strings.Contains(err.Error(), dir) {
		t.Fatalf("%v, %v", j, err)
	}
	defer j.Close()
	if low := j.Low(); len(low) != 1 || low[0] != dir {
		t.Errorf("low are %v", low)
	}
	if again, _, err := readJournal(path); err != nil || again[dir] != "512" {
		t.Errorf("the file has %v, %v", again, err)
	}
}

func TestALongJournalIsWrittenAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	j := openJournal(t, path)
	if err := j.noteLow("/x/pod-1", "77"); err == nil {
		for n := range 3 * longJournal {
			name := fmt.Sprintf("/x/pod%d", n%5)
			if j.noteLow(name, "512") != nil || j.noteNormal(name) != nil {
				t.Fatal("cannot write")
			}
		}
	}
	if lines := strings.Count(readFile(path), "\n"); lines > longJournal+1 || lines != j.lines {
		t.Errorf("the journal has %d lines, and counts %d", lines, j.lines)
	}
	left, _, err := readJournal(path)
	if err != nil || len(left) != 1 || left["/x/pod-1"] != "77" {
		t.Errorf("low are %v, %v", left, err)
	}
}

func TestAJournalHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	j, err := OpenJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := OpenJournal(path); err == nil {
		t.Errorf("%v has it, too", second)
	}
	// A guardian restores nothing while a successor has the journal.
	dir := lowPod(t, "pod1")
	if err := j.noteLow(dir, "512"); err != nil {
		t.Fatal(err)
	}
	if err := RunGuardian(strings.NewReader(""), path); err != nil || stateOf(dir) != "1 3" {
		t.Errorf("%v; the pod is %q", err, stateOf(dir))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := RunGuardian(strings.NewReader(""), path); err != nil || stateOf(dir) != "0 512" {
		t.Errorf("%v; the pod is %q", err, stateOf(dir))
	}
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("the journal has %q, %v", text, err)
	}
}

func TestAFolderIsNoJournal(t *testing.T) {
	path := t.TempDir()
	_, err := OpenJournal(path)
	if err == nil || !strings.Contains(err.Error(), path+" must be a file, and is a folder: move it away") {
		t.Errorf("a folder is a journal: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Errorf("something was written into the folder: %v", err)
	}
}

func TestALineThatWasCutShortSwallowsNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weights")
	j := openJournal(t, path)
	if err := j.noteLow("/x/pod1", "512"); err != nil {
		t.Fatal(err)
	}
	// A full disk takes the begin of a line.
	whole := j.file
	if _, err := whole.WriteString(`low 512 "/x/po`); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	j.file = full
	if err := j.noteLow("/x/pod2", "512"); err == nil {
		t.Fatal("a full disk takes a line")
	}
	j.file = whole
	if err := j.noteLow("/x/pod3", "77"); err != nil {
		t.Fatal(err)
	}
	if left, _, err := readJournal(path); err != nil || len(left) != 2 || left["/x/pod3"] != "77" {
		t.Errorf("low are %v, %v", left, err)
	}
}
