package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// summary is what the rows of a lab came to.
type summary struct {
	Rows, Survived int
	Report         verdict.Report
	// Records are what became of each row.
	Records []record
}

func (t *summary) count(report verdict.Report) {
	t.Rows++
	if report.Kept() {
		t.Survived++
	}
	t.Report.Add(report)
}

func (t *summary) add(o summary) {
	t.Rows += o.Rows
	t.Survived += o.Survived
	t.Report.Add(o.Report)
	t.Records = append(t.Records, o.Records...)
}

// status is that of the command.
func (t *summary) status() int {
	if t.Survived < t.Rows {
		return 1
	}
	return 0
}

// print prints the line that sums all up.
func (t *summary) print(out io.Writer, seed uint64) {
	r := &t.Report
	fmt.Fprintf(out, "survived=%d/%d lost=%d duplicated=%d wrong_no=%d maybe_rate=%.6f calls=%d illegal=%d seed=%d\n",
		t.Survived, t.Rows, r.Lost, r.Duplicated, r.WrongNo, r.MaybeRate(), r.Calls, r.Illegal, seed)
}

// summaryFile is where a lab leaves its tally.
const summaryFile = "tally.json"

func (t *summary) write(dir string) error {
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, summaryFile), text, 0o644)
}

func readSummary(dir string) (t summary, err error) {
	text, err := os.ReadFile(filepath.Join(dir, summaryFile))
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(text, &t)
}
