package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// docs is the project's documentation.
const docs = "../../docs"

func TestT5ThePagesAreMadeFromTheKeptRounds(t *testing.T) {
	pages, err := makePages(docs)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range pages {
		if got, err := os.ReadFile(path); err != nil || string(got) != string(want) {
			t.Errorf("%s is not what its records say: run \"make faults-page\" (%v)", path, err)
		}
	}
}

func TestT5ARoundIsReadAsItWasKept(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "results"), 0o755); err != nil {
		t.Fatal(err)
	}
	bad := verdict.Report{Counts: verdict.Counts{Calls: 3, Succeeded: 1, Maybe: 1, Broken: 1}, Faults: []string{"lost: one"}}
	kept := round{Commit: "c", Date: "2026-11-22", Seed: 7, Rate: 150, Rows: []record{
		newRecord(row{id: "F68"}, verdict.Report{Counts: verdict.Counts{Calls: 2, Succeeded: 2}}, []string{"peak=6"}, 0),
		newRecord(row{id: "F1"}, bad, nil, 0),
	}}
	if err := writeRound(filepath.Join(folder, "results", "faults-7.json"), kept); err != nil {
		t.Fatal(err)
	}
	rounds, err := readRounds(folder)
	if err != nil || len(rounds) != 1 {
		t.Fatal(rounds, err)
	}
	if rows := rounds[0].Rows; len(rows) != 2 || rows[0].Row != "F1" || rows[1].Notes[0] != "peak=6" {
		t.Errorf("the rows are %+v, and are to be in the order of the table", rows)
	}
	for _, want := range []string{"| F1 | 0 of 1 | 3 | 1 | 0 | 1 | 1 |", "- F1, seed 7: lost: one"} {
		if text := resultsText(rounds); !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if text := roundsText(rounds); !strings.Contains(text, "| 1 of 2 | 5 | 0, 0, 0 | 40.000 % |") {
		t.Errorf("the round is %s", text)
	}
}

func TestT4TheTableSaysWhatLoadEachRowHas(t *testing.T) {
	bodies := 0
	for _, row := range table() {
		if strings.Contains(row.fault, "MiB") {
			bodies++
		}
		if row.rate > 0 && row.load == "" && !strings.Contains(row.documented(), fmt.Sprintf("| %g/s |", row.rate)) {
			t.Errorf("the table does not say that %s has %g calls/s", row.id, row.rate)
		}
	}
	if bodies < 5 {
		t.Errorf("%d rows have bodies of 1 MiB, and there are to be 5 at least", bodies)
	}
}

func TestARowHasTheLoadThatTheTableNames(t *testing.T) {
	rounds, err := readRounds(docs)
	if err != nil || len(rounds) == 0 {
		t.Fatal(rounds, err)
	}
	for _, row := range table() {
		for _, r := range rounds {
			for _, in := range r.Rows {
				if in.Row == row.id && row.rate == 0 && row.load == "" && in.Calls < int(r.Rate) {
					t.Errorf("%s had %d calls with seed %d, and is said to have %g in each second", row.id, in.Calls, r.Seed, r.Rate)
				}
			}
		}
	}
}

func TestT3ThePageSaysThatTheKubeletsAreTheLabsOwn(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(docs, "reliability.md"))
	if err != nil || !strings.Contains(string(page), "The kubelets are the lab's own") {
		t.Errorf("docs/reliability.md does not say what the lab's nodes are (%v)", err)
	}
}

func TestT1OnePodMoreThanAllowedBreaksThePromise(t *testing.T) {
	var s faultEnv
	if s.podsWithin(6, 6); len(s.broken) != 0 {
		t.Errorf("six of six pods are held against Windlass: %q", s.broken)
	}
	if s.podsWithin(7, 6); len(s.broken) != 1 {
		t.Error("seven of six pods are not held against Windlass")
	}
}
