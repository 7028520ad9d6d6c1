package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// round is one run of the lab, as it is kept in docs/results.
type round struct {
	Commit  string  `json:"commit"`
	Date    string  `json:"date"`
	Machine string  `json:"machine"`
	Labs    int     `json:"labs"`
	Seed    uint64  `json:"seed"`
	Rate    float64 `json:"rate"`
	// Rows are in the order of the table.
	Rows []record `json:"rows"`
}

// record is what became of a row in one round.
type record struct {
	Row string `json:"row"`
	// Lost, Duplicated and WrongNo are 0 unless a promise was broken.
	verdict.Counts
	// Slowest and Took are in milliseconds.
	Slowest int64    `json:"slowestMs"`
	Took    int64    `json:"tookMs"`
	Notes   []string `json:"notes,omitempty"`
	// Faults are the promises that were broken.
	Faults []string `json:"faults,omitempty"`
}

func newRecord(row row, report verdict.Report, notes []string, took time.Duration) record {
	return record{
		Row: row.id, Counts: report.Counts,
		Slowest: report.Slowest.Milliseconds(), Took: took.Milliseconds(), Notes: notes, Faults: report.Faults,
	}
}

// writeRound keeps a round in a file.
func writeRound(path string, kept round) error {
	place := make(map[string]int)
	for i, row := range table() {
		place[row.id] = i
	}
	slices.SortFunc(kept.Rows, func(a, b record) int { return cmp.Compare(place[a.Row], place[b.Row]) })
	text, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// readRounds reads the rounds that a folder keeps, in the order of their files' names.
func readRounds(docs string) ([]round, error) {
	files, err := filepath.Glob(filepath.Join(docs, "results", "faults-*.json"))
	if err != nil {
		return nil, err
	}
	var rounds []round
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var kept round
		if err := json.Unmarshal(text, &kept); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		rounds = append(rounds, kept)
	}
	return rounds, nil
}
