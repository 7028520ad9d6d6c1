package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

func TestRowsAreChosenByNameNumberAndRange(t *testing.T) {
	var all []row
	for _, id := range []string{"F1", "F7", "F7b", "F18a", "F18b", "F21", "F48h"} {
		all = append(all, row{id: id})
	}
	tests := map[string][]string{
		"":           {"F1", "F7", "F7b", "F18a", "F18b", "F21", "F48h"},
		"F7b":        {"F7b"},
		"F7":         {"F7", "F7b"},
		"F21,F1":     {"F1", "F21"},
		"F7-F18":     {"F7", "F7b", "F18a", "F18b"},
		"F7,F7b":     {"F7", "F7b"},
		"F18,F40-50": {"F18a", "F18b", "F48h"},
	}
	for list, want := range tests {
		chosen, err := choose(all, list)
		var got []string
		for _, r := range chosen {
			got = append(got, r.id)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q chooses %v, %v; want %v", list, got, err, want)
		}
	}
	for _, list := range []string{"F2", "F1,F99", "F", "1x"} {
		if chosen, err := choose(all, list); err == nil {
			t.Errorf("%q chooses %v", list, chosen)
		}
	}
}

func TestLabsShareAllRows(t *testing.T) {
	all := []row{{id: "F1"}, {id: "F2"}, {id: "F3"}}
	for which, want := range map[string]string{"0/1": "F1 F2 F3", "": "F1 F2 F3", "0/2": "F1 F3", "1/2": "F2", "3/4": ""} {
		var got []string
		for _, r := range shared(all, which) {
			got = append(got, r.id)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q is the share %v, want %s", which, got, want)
		}
	}
}

func TestATallyOutlivesItsLab(t *testing.T) {
	var found summary
	found.count(verdict.Report{Counts: verdict.Counts{Calls: 3, Lost: 1}, Faults: []string{"lost"}})
	found.count(verdict.Report{Counts: verdict.Counts{Calls: 4}})
	dir := t.TempDir()
	if err := found.write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := readSummary(dir)
	if err != nil {
		t.Fatal(err)
	}
	var total summary
	total.add(read)
	total.add(read)
	if total.Rows != 4 || total.Survived != 2 || total.Report.Calls != 14 || total.Report.Lost != 2 || total.status() != 1 {
		t.Errorf("twice %+v is %+v", found, total)
	}
	var line strings.Builder
	total.print(&line, 7)
	if want := "survived=2/4 lost=2 duplicated=0 wrong_no=0 maybe_rate=0.000000 calls=14 illegal=0 seed=7\n"; line.String() != want {
		t.Errorf("printed %q, want %q", line.String(), want)
	}
}

func TestEveryRowIsComplete(t *testing.T) {
	seen := make(map[string]bool)
	for _, r := range table() {
		if number(r.id) < 1 || seen[r.id] {
			t.Errorf("the id %q is no number of the matrix, or is there twice", r.id)
		}
		seen[r.id] = true
		if r.fault == "" || r.promise == "" || r.run == nil || r.allow.Patience == 0 {
			t.Errorf("%s lacks its fault, its promise, what it runs or its patience", r.id)
		}
	}
}

func TestFiguresAreChosenByName(t *testing.T) {
	for list, want := range map[string]int{"all": len(allFigures()), "kill": 1, "pause,kill": 2} {
		if chosen, err := chooseFigures(list); err != nil || len(chosen) != want {
			t.Errorf("%q chooses %d, %v; want %d", list, len(chosen), err, want)
		}
	}
	for _, list := range []string{"kil", "kill,", "all,kill"} {
		if chosen, err := chooseFigures(list); err == nil {
			t.Errorf("%q chooses %d", list, len(chosen))
		}
	}
}
