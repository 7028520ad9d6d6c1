package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Marks between which reliability.md is made.
const (
	rowsBegin, rowsEnd     = "<!-- faults rows: made by make faults-page -->\n", "<!-- end of faults rows -->\n"
	roundsBegin, roundsEnd = "<!-- faults rounds: made by make faults-page -->\n", "<!-- end of faults rounds -->\n"
)

// writePages makes the pages of a folder of documentation from the rounds that it keeps.
func writePages(docs string) error {
	pages, err := makePages(docs)
	if err != nil {
		return err
	}
	for path, text := range pages {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// makePages returns the texts of the pages, by their paths.
func makePages(docs string) (map[string][]byte, error) {
	rounds, err := readRounds(docs)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(docs, "reliability.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if page, err = between(page, rowsBegin, rowsEnd, rowsText()); err != nil {
		return nil, err
	}
	if page, err = between(page, roundsBegin, roundsEnd, roundsText(rounds)); err != nil {
		return nil, err
	}
	return map[string][]byte{path: page, filepath.Join(docs, "results", "faults.md"): []byte(resultsText(rounds))}, nil
}

// between replaces what stands between two marks.
func between(page []byte, begin, end, text string) ([]byte, error) {
	head, rest, found := bytes.Cut(page, []byte(begin))
	_, tail, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return nil, fmt.Errorf("reliability.md lacks the marks %q and %q", begin, end)
	}
	return fmt.Appendf(nil, "%s%s%s%s%s", head, begin, text, end, tail), nil
}

// rowsText is what breaks and what is promised, by chapter.
func rowsText() string {
	var b strings.Builder
	for _, chapter := range chapters() {
		fmt.Fprintf(&b, "\n### %s\n\n| row | what breaks | what is promised | calls |\n|---|---|---|---|\n", chapter.title)
		for _, row := range chapter.rows {
			fmt.Fprintln(&b, row.documented())
		}
	}
	return b.String() + "\n"
}

// callers says how often is called, or by whom.
func (r row) callers() string {
	switch {
	case r.load != "":
		return r.load
	case r.rate > 0:
		return fmt.Sprintf("%g/s", r.rate)
	}
	return "150/s"
}

// roundsText is one line for each round.
func roundsText(rounds []round) string {
	var b strings.Builder
	b.WriteString("\n| round | rows that survived | calls | lost, run twice, wrong `no` | `maybe` or cut off |\n|---|---|---|---|---|\n")
	for _, r := range rounds {
		survived, sum := r.sum()
		fmt.Fprintf(&b, "| %s, seed %d, commit %s | %d of %d | %d | %d, %d, %d | %.3f %% |\n",
			r.Date, r.Seed, r.Commit, survived, len(r.Rows), sum.Calls, sum.Lost, sum.Duplicated, sum.WrongNo,
			100*sum.MaybeRate())
	}
	return b.String() + "\n"
}

// sum adds the rows of a round up.
func (r *round) sum() (survived int, sum record) {
	for i := range r.Rows {
		if len(r.Rows[i].Faults) == 0 {
			survived++
		}
		sum.add(r.Rows[i])
	}
	return survived, sum
}

func (r *record) add(o record) {
	r.Counts = r.Counts.Plus(o.Counts)
	r.Slowest = max(r.Slowest, o.Slowest)
}

// resultsText is what became of each row in all rounds.
func resultsText(rounds []round) string {
	var b strings.Builder
	b.WriteString("# What became of each row of the fault lab\n\n" +
		"Made by `make faults-page` from the rounds that `make faults RECORD=FILE` has kept beside this page.\n" +
		"[Reliability](../reliability.md#fault-by-fault) says what each row breaks and promises.\n\n")
	for _, r := range rounds {
		fmt.Fprintf(&b, "- %s, commit %s, seed %d, %g calls/s, %d labs at once, on %s\n", r.Date, r.Commit, r.Seed, r.Rate, max(1, r.Labs), r.Machine)
	}
	b.WriteString("\n| row | survived | calls | answered well | `no` | `maybe` | cut off | client left | slowest |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, row := range table() {
		runs, survived, sum := 0, 0, record{}
		for _, r := range rounds {
			for _, in := range r.Rows {
				if in.Row != row.id {
					continue
				}
				runs++
				if len(in.Faults) == 0 {
					survived++
				}
				sum.add(in)
			}
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %d | %d | %d | %d | %d | %d | %v |\n", row.id, survived, runs,
			sum.Calls, sum.Succeeded, sum.No, sum.Maybe, sum.Broken, sum.Left, time.Duration(sum.Slowest)*time.Millisecond)
	}
	broken := false
	for _, r := range rounds {
		for _, in := range r.Rows {
			if len(in.Faults) == 0 {
				continue
			}
			if !broken {
				b.WriteString("\n## Broken promises\n\n")
				broken = true
			}
			fmt.Fprintf(&b, "- %s, seed %d: %s\n", in.Row, r.Seed, strings.Join(in.Faults, "; "))
		}
	}
	return b.String() + unseen(rounds, changes())
}
