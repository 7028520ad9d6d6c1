package publictexts

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Group is the texts of one kind.
type Group struct {
	// Title says where people read them.
	Title string
	Texts []Text
}

// Text is one of them, and what it is about: a metric, a command, a field.
type Text struct {
	Of, Text string
}

// Gather reads all groups of the checkout whose folder is root. A group without a
// text is an error: its source has moved.
func Gather(root string) ([]Group, error) {
	var groups []Group
	for _, source := range []struct {
		title string
		read  func(root string) ([]Text, error)
	}{
		{"Metrics", metrics},
		{"Commands", commands},
		{"Alerts", alerts},
		{"Dashboards", dashboards},
		{"Conditions and Events", conditions},
		{"Problems", problemTypes},
		{"Chart values", chartValues},
		{"Fields of the API", fields},
	} {
		texts, err := source.read(root)
		if err == nil && len(texts) == 0 {
			err = errors.New("there is no text")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.ToLower(source.title), err)
		}
		groups = append(groups, Group{source.title, texts})
	}
	return groups, nil
}

// Write writes groups as one page of Markdown. A text is on the page once, with the
// first of what it is about.
func Write(w io.Writer, groups []Group) error {
	var page strings.Builder
	page.WriteString("# Public texts\n")
	seen := map[string]bool{}
	for _, g := range groups {
		fmt.Fprintf(&page, "\n## %s\n\n", g.Title)
		for _, t := range g.Texts {
			if seen[t.Text] {
				continue
			}
			seen[t.Text] = true
			fmt.Fprintf(&page, "- %s: %s\n", t.Of, strings.ReplaceAll(strings.TrimSpace(t.Text), "\n", "\n  "))
		}
	}
	_, err := io.WriteString(w, page.String())
	return err
}
