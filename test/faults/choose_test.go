package main

import (
	"os"
	"slices"
	"strings"
	"testing"
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

func TestEveryRowIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(page), "\n")
	for _, r := range table() {
		if !slices.Contains(lines, r.documented()) {
			t.Errorf("docs/reliability.md lacks this line:\n%s", r.documented())
		}
	}
	for _, line := range lines {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if number(id) > 0 && !slices.ContainsFunc(table(), func(r row) bool { return r.id == id }) {
			t.Errorf("docs/reliability.md has a row that the lab has not: %s", line)
		}
	}
}
