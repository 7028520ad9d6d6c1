package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

func written(t *testing.T, chart string) []byte {
	t.Helper()
	var b bytes.Buffer
	r := report.Report{Name: chart + "-report", Title: "about " + chart, Charts: []report.Chart{{
		Name: chart, Kind: report.Lines, Series: []report.Series{{Name: "s", Points: []report.Point{{X: 1, Y: 2}, {X: 2, Y: 1}}}},
	}}}
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestChartsOfAllReportsAreDrawn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	in := bytes.NewReader(append(written(t, "one"), written(t, "../two")...))
	var out bytes.Buffer
	if err := run([]string{"-dir", dir, "-formats", "svg,txt,md"}, in, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one.svg", "two.svg", "one-report.txt", "two-report.txt", "figures.md"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil || !strings.Contains(out.String(), name) {
			t.Errorf("%s: %v; told %q", name, err, out.String())
		}
	}
}

func TestMistakesAreNamed(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-formats", "svg,gif"}, `"gif"`},
		{[]string{broken}, "broken.json"},
		{[]string{filepath.Join(t.TempDir(), "none.json")}, "none.json"},
	} {
		if err := run(tt.args, strings.NewReader(""), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v: %v, want an error with %s", tt.args, err, tt.want)
		}
	}
}
