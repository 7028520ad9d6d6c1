//go:build apiserver

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	tableBegins = "<!-- values: made from values.yaml by `go test -tags apiserver ./test/chart -run TestReadme -update` -->\n"
	tableEnds   = "<!-- end of values -->\n"
)

// TestReadmeTellsEveryValue compares the table in README.md with values.yaml, in
// which every value has a comment that begins with "# -- ".
func TestReadmeTellsEveryValue(t *testing.T) {
	path := filepath.Join(chartDir, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !found || !ends {
		t.Fatalf("%s has no place for the table, between\n%s%s", path, tableBegins, tableEnds)
	}
	golden(t, path, before+tableBegins+"\n"+valuesTable(t)+"\n"+tableEnds+after)
}

func valuesTable(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chartDir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString("| key | default | what it is |\n|---|---|---|\n")
	writeRows(t, &table, "", document.Content[0])
	return table.String()
}

// writeRows writes a row for every key with a comment, and looks below the others.
func writeRows(t *testing.T, table *strings.Builder, prefix string, mapping *yaml.Node) {
	t.Helper()
	for i := 0; i < len(mapping.Content); i += 2 {
		key, value := mapping.Content[i], mapping.Content[i+1]
		name := prefix + key.Value
		description, preset := comment(key.HeadComment)
		switch {
		case description == "" && value.Kind == yaml.MappingNode && len(value.Content) > 0:
			writeRows(t, table, name+".", value)
			continue
		case description == "":
			t.Errorf("values.yaml line %d: %s has no comment that begins with \"# -- \"", key.Line, name)
			continue
		case preset == "":
			preset = "`" + inline(t, value) + "`"
		}
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", name, preset, strings.ReplaceAll(description, "|", `\|`))
	}
}

// comment takes a description apart from "@default -- ", which stands for a
// default that is too long for a table.
func comment(head string) (description, preset string) {
	for line := range strings.Lines(head) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		if text, ok := strings.CutPrefix(line, "-- "); ok {
			description = text
		}
		if text, ok := strings.CutPrefix(line, "@default -- "); ok {
			preset = text
		}
	}
	return description, preset
}

// inline writes a value on one line.
func inline(t *testing.T, value *yaml.Node) string {
	t.Helper()
	flat := *value
	if flat.Kind != yaml.ScalarNode {
		flat.Style = yaml.FlowStyle
	}
	text, err := yaml.Marshal(&flat)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}
