package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Table is a table of a report.
type Table struct {
	// Name is in lower case, and Caption a sentence.
	Name    string   `json:"name"`
	Caption string   `json:"caption"`
	Columns []string `json:"columns"`
	// Rows have a cell for each column.
	Rows [][]Cell `json:"rows"`
}

// Cell is a string, a float64, or nil for no value.
type Cell any

// Num is a cell with a number, or without one if it is none.
func Num[T ~int | ~int64 | ~uint64 | ~float64](n T) Cell {
	if f := float64(n); !math.IsNaN(f) && !math.IsInf(f, 0) {
		return f
	}
	return nil
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, cells) }

// WriteCSV writes the tables, each below a line with its columns and with its
// name in the first column; an empty line is between two.
func (r Report) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	for i, t := range r.Tables {
		if i > 0 {
			out.Flush()
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		// The writer keeps its first error for Error.
		_ = out.Write(append([]string{"table"}, t.Columns...))
		for _, row := range t.Rows {
			line := []string{t.Name}
			for _, c := range row {
				line = append(line, exact(c))
			}
			_ = out.Write(line)
		}
	}
	out.Flush()
	return out.Error()
}

func exact(c Cell) string {
	switch v := c.(type) {
	case nil:
		return ""
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(c)
}

// number is a number for people: four digits, and never an exponent.
func number(f float64) string {
	size := math.Abs(f)
	digits := 0
	for limit := 1000.0; digits < 6 && size < limit && size > 0; limit /= 10 {
		digits++
	}
	text := strconv.FormatFloat(f, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

func shown(c Cell) string {
	switch v := c.(type) {
	case nil:
		return "-"
	case float64:
		return number(v)
	}
	return fmt.Sprint(c)
}

// writeColumns writes rows in columns, numbers to the right.
func writeColumns(w io.Writer, columns []string, rows [][]Cell) error {
	widths := make([]int, len(columns))
	right := make([]bool, len(columns))
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(shown(c)))
			if _, isNumber := c.(float64); isNumber {
				right[i] = true
			}
		}
	}
	line := func(texts []string) error {
		var b strings.Builder
		for i, text := range texts {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if right[i] {
				text = space + text
			} else {
				text += space
			}
			b.WriteString(text + "   ")
		}
		_, err := fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
		return err
	}
	if err := line(columns); err != nil {
		return err
	}
	for _, row := range rows {
		texts := make([]string, len(row))
		for i, c := range row {
			texts[i] = shown(c)
		}
		if err := line(texts); err != nil {
			return err
		}
	}
	return nil
}
