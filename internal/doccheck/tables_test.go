package doccheck

import (
	"regexp"
	"strings"
	"testing"
)

var (
	separator = regexp.MustCompile(`^\|(\s*:?-+:?\s*\|)+$`)
	inCode    = regexp.MustCompile("`[^`]*`")
)

// A row that lost its end of line shows up as text in the middle of a page.
func TestRowsHaveTheCellsOfTheirTable(t *testing.T) {
	eachPage(t, func(t *testing.T, path, text string) {
		for _, line := range oddRows(text) {
			t.Errorf("%s:%d: the row has another number of cells than its table", path, line)
		}
	})
}

// oddRows are the lines of tables that have other cells than the line below the head.
func oddRows(text string) []int {
	var odd []int
	code, columns := false, 0
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		code = code != strings.HasPrefix(line, "```")
		switch {
		case code || !strings.HasPrefix(line, "|"):
			columns = 0
			continue
		case columns == 0 && i+1 < len(lines) && separator.MatchString(strings.TrimSpace(lines[i+1])):
			columns = strings.Count(lines[i+1], "|")
		}
		if cells(line) != columns {
			odd = append(odd, i+1)
		}
	}
	return odd
}

func cells(line string) int {
	line = inCode.ReplaceAllString(line, "")
	return strings.Count(line, "|") - strings.Count(line, `\|`)
}

func TestOddRows(t *testing.T) {
	for text, want := range map[string]int{
		"| a | b |\n|---|---|\n| c | `d|e` |\n":             0,
		"| a | b |\n|---|---|\n| c | d | | e | f |\n":       1,
		"| a | b |\n|---|---|\n| c \\| d | e |\n":           0,
		"| a | b | |---|---|\n| c | d |\n":                  2,
		"```\n| a |\n```\n\n| a |\n|---|\n| b |\n| c | d |": 1,
	} {
		if got := oddRows(text); len(got) != want {
			t.Errorf("%q has odd rows %v, want %d", text, got, want)
		}
	}
}
