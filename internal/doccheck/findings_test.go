package doccheck

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// findings is the page that says for each finding what changed and which test holds it.
const findings = "docs/design/0025-nothing-surprises.md"

var (
	testName = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w*`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)[A-Z]\w*)\(`)
	finding  = regexp.MustCompile(`(?m)^\| ([AHMLTS]\d+)\b([^\n]*)`)
)

func TestFindingsNameTestsThatExist(t *testing.T) {
	exist := make(map[string]bool)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != root {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, found := range testFunc.FindAllStringSubmatch(string(text), -1) {
			exist[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, filepath.Join(root, findings))
	for _, name := range testName.FindAllString(page, -1) {
		if !exist[name] {
			t.Errorf("%s names %s, and no such test exists", findings, name)
		}
	}
	// Each of these has a line, be it that it is open.
	has := make(map[string]bool)
	for _, row := range finding.FindAllStringSubmatch(page, -1) {
		has[row[1]] = true
		if !strings.Contains(row[2], "Test") && !strings.Contains(row[2], "`") && !strings.Contains(strings.ToLower(row[2]), "open") {
			t.Errorf("%s: %s has neither a test nor the word open", findings, row[1])
		}
	}
	for _, want := range strings.Fields(`A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12 A13 A14 A15 A16 A17 A18 A19 A20 H1 H2 H3 H4
		M1 M2 M3 M4 M5 M6 M7 M8 M9 L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 T1 T2 T3 T4 T5
		S1 S2 S3 S4 S5 S6 S7 S8 S9 S10 S11 S12 S13 S14 S15 S16 S17 S18 S19 S20 S21`) {
		if !has[want] {
			t.Errorf("%s says nothing about %s", findings, want)
		}
	}
}
