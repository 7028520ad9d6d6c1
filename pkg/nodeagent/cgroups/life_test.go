package cgroups

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSilenceIsJudgedByWhatWasSaidLast(t *testing.T) {
	const onTime, late = silentFor + 10*time.Millisecond, time.Minute
	type heard struct {
		words    string
		listened time.Duration
		times    int
	}
	for name, tc := range map[string]struct {
		heard []heard
		hangs bool
	}{
		"it never said anything":           {heard: []heard{{"", onTime, 9}}},
		"it needs nobody":                  {heard: []heard{{"r", 0, 1}, {"n", 0, 1}, {"", onTime, 9}}},
		"it said so in one breath":         {heard: []heard{{"rrn", 0, 1}, {"", onTime, 9}}},
		"it is silent for a short time":    {heard: []heard{{"r", 0, 1}, {"", onTime, mostSilent - 1}}},
		"it hangs":                         {heard: []heard{{"r", 0, 1}, {"", onTime, mostSilent}}, hangs: true},
		"it goes on":                       {heard: []heard{{"r", 0, 1}, {"", onTime, mostSilent - 1}, {"r", 0, 1}, {"", onTime, mostSilent - 1}}},
		"it hangs after a calm time":       {heard: []heard{{"n", 0, 1}, {"nr", 0, 1}, {"", onTime, mostSilent}}, hangs: true},
		"nobody gets a core":               {heard: []heard{{"r", 0, 1}, {"", late, 9}}},
		"the machine sleeps, and it hangs": {heard: []heard{{"r", 0, 1}, {"", onTime, 2}, {"", late, 1}, {"", onTime, mostSilent - 2}}, hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			var s silence
			hangs := false
			for _, h := range tc.heard {
				for range h.times {
					hangs = s.heard([]byte(h.words), h.listened)
				}
			}
			if hangs != tc.hangs {
				t.Errorf("it hangs: %t, want %t", hangs, tc.hangs)
			}
		})
	}
}

// TestANodeAgentTellsThatItLivesWhileSomethingIsLow: each word wakes the watcher up.
func TestANodeAgentTellsThatItLivesWhileSomethingIsLow(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	journal := openJournal(t, filepath.Join(t.TempDir(), "bands"))
	life, err := lifeBy(int(write.Fd()), journal)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 0)
	tell := func(after time.Duration, watching bool, want string) {
		t.Helper()
		at = at.Add(after)
		life.Tell(at, watching)
		words := make([]byte, 8)
		if err := read.SetReadDeadline(time.Now()); err != nil {
			t.Fatal(err)
		}
		if want != "" {
			_ = read.SetReadDeadline(time.Time{})
		}
		if n, _ := read.Read(words); string(words[:n]) != want {
			t.Fatalf("after %v it told %q, want %q", at.Sub(time.Unix(0, 0)), words[:n], want)
		}
	}
	dir := filepath.Join(t.TempDir(), "pod")
	tell(time.Hour, true, "")
	if err := journal.noteLow(dir, "512"); err != nil {
		t.Fatal(err)
	}
	tell(0, true, "r")
	tell(lifeEvery-1, true, "")
	tell(1, true, "r")
	tell(lifeEvery, false, "n") // it looks at nothing any more, though something could not be restored
	tell(time.Hour, false, "")
	tell(0, true, "r")
	if err := journal.noteNormal(dir); err != nil {
		t.Fatal(err)
	}
	tell(0, true, "n")
	tell(time.Hour, true, "")
	// A watcher that is stopped reads nothing.
	if err := journal.noteLow(dir, "512"); err != nil {
		t.Fatal(err)
	}
	for range 1 << 17 {
		at = at.Add(lifeEvery)
		life.Tell(at, true)
	}
}

func TestNobodyLivesForAWatcherThatIsNotThere(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "no pipe"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := lifeBy(int(file.Fd()), nil); err == nil {
		t.Error("a process that nobody watches got a life")
	}
}
