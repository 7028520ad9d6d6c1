package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/windlass-dev/windlass/internal/monitor"
)

// Print writes a View as a table without colours, every column as wide as it must be: of functions,
// or of nodes.
func Print(w io.Writer, v monitor.View, c Config) error {
	var out strings.Builder
	if c.Nodes {
		printTable(&out, nodeColumns(0, v.Nodes), v.Nodes)
	} else {
		functions := monitor.Choose(v.Functions, c.Choice)
		monitor.Sort(functions, c.Order, false)
		printTable(&out, functionColumns(layout{namespaces: c.Choice.Namespace == "", status: true, revisions: severalRevisions(functions), sparks: 20}), functions)
	}
	for _, trouble := range v.Troubles {
		fmt.Fprintf(&out, "not all is shown: %s\n", trouble)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func printTable[T any](out *strings.Builder, columns []column[*T], items []T) {
	lines := make([][]string, len(items)+1)
	for i, column := range columns {
		lines[0] = append(lines[0], column.title)
		for j := range items {
			lines[j+1] = append(lines[j+1], column.cell(&items[j]).text)
		}
		width := 0
		for _, line := range lines {
			width = max(width, ansi.StringWidth(line[i]))
		}
		for j, line := range lines {
			lines[j][i] = padded(line[i], width, column.left)
		}
	}
	for _, line := range lines {
		out.WriteString(strings.TrimRight(strings.Join(line, strings.Repeat(" ", gap)), " ") + "\n")
	}
}

func padded(text string, width int, left bool) string {
	pad := strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
	if left {
		return text + pad
	}
	return pad + text
}
