package main

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
)

// page and its heading are where the files to open stand, by question.
const (
	page    = "docs/architecture.md"
	heading = "### Files to open"
)

var linked = regexp.MustCompile(`\]\([^)]+\)`)

// filesToOpen counts the links in each row of the table.
// internal/doccheck sees to it that they lead somewhere.
func filesToOpen(tree fs.FS) ([]figure, error) {
	text, err := fs.ReadFile(tree, page)
	if err != nil {
		return nil, err
	}
	_, section, _ := strings.Cut(string(text), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	var questions []figure
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if files := len(linked.FindAllString(line, -1)); files > 0 && len(cells) > 2 {
			questions = append(questions, figure{name: strings.TrimSpace(cells[1]), n: files})
		}
	}
	if len(questions) == 0 {
		return nil, fmt.Errorf("%s has no table of files below %q", page, heading)
	}
	return questions, nil
}
