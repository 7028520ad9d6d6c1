package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/windlass-dev/windlass/internal/monitor"
)

const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours text for a terminal and leaves it alone for everything else.
func (h *host) paint(w io.Writer, colour, text string) string {
	if colour == "" || !h.colours(w) {
		return text
	}
	return colour + text + plain
}

// colours says whether a stream shows colours.
func (h *host) colours(w io.Writer) bool {
	return h.getenv("NO_COLOR") == "" && h.getenv("TERM") != "dumb" && isTerminal(w)
}

// cell is one field of a table.
type cell struct{ text, colour string }

// printable is text of others, such as what a function wrote last, without what a terminal might obey. It
// keeps its lines and tabs.
func printable(text string) string {
	var out strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if r == '\n' || r == '\t' {
			out.WriteRune(r)
		} else {
			out.WriteString(monitor.Printable(string(r)))
		}
	}
	return out.String()
}

// table writes rows in columns; the first row is the head. A cell is one line, whatever is in its text.
func (h *host) table(w io.Writer, rows [][]cell) {
	for _, row := range rows {
		for i := range row {
			row[i].text = monitor.Printable(row[i].text)
		}
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, c := range row {
			line.WriteString(h.paint(w, c.colour, c.text))
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text)+3))
			}
		}
		fmt.Fprintln(w, line.String())
	}
}

func cells(texts ...string) []cell {
	row := make([]cell, len(texts))
	for i, text := range texts {
		row[i].text = text
	}
	return row
}

// clock writes a time in the local zone, and the day only if it is not today.
func (h *host) clock(at time.Time) string {
	now := h.now()
	at = at.In(now.Location())
	if at.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return at.Format("15:04:05.0")
	}
	return at.Format(time.DateOnly + " 15:04:05")
}

func checkOutput(output string, known ...string) error {
	if slices.Contains(known, output) {
		return nil
	}
	return usagef("-o %s is not known; write -o and one of %s", output, strings.Join(known, ", "))
}

// printObject prints an object for a program to read.
func (h *host) printObject(v any, output string) error {
	if output == "yaml" {
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = h.Out.Write(text)
		return err
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(h.Out, "%s\n", text)
	return err
}
