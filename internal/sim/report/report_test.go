package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func example() Report {
	t := Table{Name: "cells", Caption: "some cells", Columns: []string{"what", "much", "sd"}}
	t.Add("first", Num(1234.5678), Num(0.00012))
	t.Add("second, with comma", Num(-2), Num(math.NaN()))
	return Report{
		Name: "trial", Title: "what happens", Seed: 3, Seeds: 2, Scale: .5,
		Parameters: []Parameter{{Name: "tick", Value: "100 ms", Source: "paper IV-B"}},
		Findings: []Finding{
			Found("ratio", 1.25).Most(1.3).Compare("paper: %d", 2),
			Found("share", .9).Least(.95),
			Found("band", 5).Least(1).Most(4),
			Found("pace", 12345678),
		},
		Tables: []Table{t, {Name: "empty", Caption: "nothing", Columns: []string{"a"}}},
		Charts: []Chart{{Name: "c", Kind: Lines, Series: []Series{{Name: "s", Points: []Point{{X: 1, Y: 2, Err: .5}}}}}},
		Notes:  []string{"A note that is " + strings.Repeat("very ", 25) + "long."},
	}
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `trial: what happens
seeds 3 to 4, scale 0.5

parameter   value    source
tick        100 ms   paper IV-B

cells: some cells
what                 much        sd
first                1235   0.00012
second, with comma     -2         -

empty: nothing
a

A note that is very very very very very very very very very very very very very very very very very
very very very very very very very very long.

trial_ratio=1.25  goal <= 1.3  met  (paper: 2)
trial_share=0.9  goal >= 0.95  MISSED
trial_band=5  goal >= 1 and <= 4  MISSED
trial_pace=12345678
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := example().WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	want := "table,what,much,sd\ncells,first,1234.5678,0.00012\ncells,\"second, with comma\",-2,\n\ntable,a\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSONComesBack(t *testing.T) {
	var b bytes.Buffer
	for range 2 {
		if err := example().WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ReadJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Report{example(), example()}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := ReadJSON(strings.NewReader(`{"name": 3}`)); err == nil || !strings.Contains(err.Error(), "report 1") {
		t.Errorf("error %v, want one about report 1", err)
	}
}

func TestNumbersHaveFourDigitsAndNoExponent(t *testing.T) {
	for f, want := range map[float64]string{
		0: "0", 1: "1", 1.5: "1.5", 123.456: "123.5", 0.0123456: "0.01235", 1e9: "1000000000", -0.00000001: "0", 99999.9: "100000",
	} {
		if got := number(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WriteMarkdown(&b, []Report{example()}); err != nil {
		t.Fatal(err)
	}
	want := "| experiment | figure | found | goal | | |\n|---|---|---|---|---|---|\n" +
		"| trial | `ratio` | 1.25 | <= 1.3 | met | paper: 2 |\n" +
		"| trial | `share` | 0.9 | >= 0.95 | **missed** |  |\n" +
		"| trial | `band` | 5 | >= 1 and <= 4 | **missed** |  |\n" +
		"| trial | `pace` | 12345678 |  |  |  |\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}
