package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// lineWidth is where notes are broken.
const lineWidth = 100

// WriteText writes the report for people: assumptions, tables, notes, and each finding as
// name=value with its goal.
func (r Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s: %s\n", r.Name, r.Title)
	fmt.Fprintf(&b, "seeds %d to %d, scale %s\n", r.Seed, r.Seed+uint64(max(r.Seeds, 1))-1, number(r.Scale))
	if len(r.Parameters) > 0 {
		rows := make([][]Cell, len(r.Parameters))
		for i, p := range r.Parameters {
			rows[i] = []Cell{p.Name, p.Value, p.Source}
		}
		fmt.Fprintln(&b)
		_ = writeColumns(&b, []string{"parameter", "value", "source"}, rows)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(&b, "\n%s: %s\n", t.Name, t.Caption)
		_ = writeColumns(&b, t.Columns, t.Rows)
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "\n%s\n", wrapped(note))
	}
	if len(r.Findings) > 0 {
		fmt.Fprintln(&b)
	}
	for _, f := range r.Findings {
		fmt.Fprintln(&b, f.line(r.Name))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// line is name=value, the goal and whether it is met, and what it is beside.
func (f Finding) line(experiment string) string {
	line := experiment + "_" + f.Name + "=" + number(f.Value)
	if goal := f.Goal(); goal != "" {
		verdict := "met"
		if !f.Met() {
			verdict = "MISSED"
		}
		line += "  goal " + goal + "  " + verdict
	}
	if f.Beside != "" {
		line += "  (" + f.Beside + ")"
	}
	return line
}

func wrapped(text string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch {
		case column == 0:
		case column+1+len(word) > lineWidth:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
