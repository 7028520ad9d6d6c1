package main

import "testing"

func TestEveryBugOfTheAncestorHasItsRow(t *testing.T) {
	if len(ancestorBugs) != 8 {
		t.Errorf("there are %d bugs, want the 8 that are known", len(ancestorBugs))
	}
	used := make(map[string]bool)
	for _, bug := range ancestorBugs {
		rows, err := choose(table(), bug.row)
		if err != nil || len(rows) == 0 || used[bug.row] {
			t.Errorf("%s: row %s: %d, %v", bug.name, bug.row, len(rows), err)
		}
		used[bug.row] = true
	}
}
