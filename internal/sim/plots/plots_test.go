package plots

import (
	"bytes"
	"encoding/xml"
	"image/png"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/sim/report"
)

func charts() []report.Chart {
	series := []report.Series{
		{Name: "first", Points: []report.Point{{X: 1, Y: 3, Err: 1}, {X: 2, Y: 30}, {X: 64, Y: 3000}}},
		{Name: "second", Points: []report.Point{{X: 1, Y: 0}, {X: 2, Y: 4}}}, // 0 is on no logarithmic axis
	}
	goal := report.Series{Name: "goal", Guide: true, Points: []report.Point{{X: 1, Y: 5}, {X: 64, Y: 5}}}
	return []report.Chart{
		{Name: "lines", Title: "a title", Kind: report.Lines, X: report.Axis{Label: "functions", Log: true, Base2: true}, Y: report.Axis{Label: "calls", Log: true}, Series: append(series, goal)},
		{Name: "steps", Title: "a title", Kind: report.Steps, X: report.Axis{Label: "functions"}, Y: report.Axis{Label: "calls", FromZero: true}, Series: series},
		{Name: "dots", Title: "a title", Kind: report.Dots, X: report.Axis{Label: "functions"}, Y: report.Axis{Label: "calls"}, Series: series},
		{Name: "bars", Title: "a title", Kind: report.Bars, X: report.Axis{Label: "functions", Names: []string{"zero", "one", "two"}}, Y: report.Axis{Label: "calls", FromZero: true}, Series: series},
	}
}

func TestChartsAreDrawnWithTheirWords(t *testing.T) {
	for _, c := range charts() {
		var svg, again bytes.Buffer
		if err := Draw(&svg, c, "svg"); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"a title", "functions", "calls", "first", "second"} {
			if !strings.Contains(svg.String(), word) {
				t.Errorf("%s does not say %q", c.Name, word)
			}
		}
		if err := Draw(&again, c, "svg"); err != nil || !bytes.Equal(svg.Bytes(), again.Bytes()) {
			t.Errorf("%s is drawn differently the second time, error %v", c.Name, err)
		}
		var picture bytes.Buffer
		if err := Draw(&picture, c, "png"); err != nil {
			t.Fatal(err)
		}
		if _, err := png.Decode(&picture); err != nil {
			t.Errorf("%s is no PNG: %v", c.Name, err)
		}
	}
}

func TestWhatCannotBeDrawnIsAnError(t *testing.T) {
	empty := report.Chart{Name: "empty", Series: []report.Series{{Name: "nothing"}}}
	if err := Draw(&bytes.Buffer{}, empty, "svg"); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("error %v, want one that names the chart", err)
	}
	if err := Draw(&bytes.Buffer{}, charts()[0], "bmpp"); err == nil || !strings.Contains(err.Error(), "bmpp") {
		t.Errorf("error %v, want one that names the format", err)
	}
}

func TestLinearAxesHaveSomeRoundLabels(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		want      string
	}{
		{0, 2500, "0 500 1000 1500 2000 2500"}, {795, 1010, "800 850 900 950 1000"}, {0, .31, "0.00 0.05 0.10 0.15 0.20 0.25 0.30"},
		{0, 20, "0 5 10 15 20"}, {3, 3, "3"},
	} {
		var labels []string
		for _, tick := range (evenTicks{}).Ticks(tt.low, tt.high) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != tt.want {
			t.Errorf("between %v and %v: %s, want %s", tt.low, tt.high, got, tt.want)
		}
	}
}

func TestLogarithmicAxesHaveLabels(t *testing.T) {
	for _, tt := range []struct {
		low, high float64
		two       bool
		least     int
	}{{1, 64, true, 7}, {1, 1000, false, 4}, {12, 70, false, 2}, {2.1, 2.9e6, false, 6}, {9.8, 11.5, false, 1}} {
		labels := 0
		for _, tick := range (logTicks{powersOfTwo: tt.two}).Ticks(tt.low, tt.high) {
			if tick.Value < tt.low*.999 || tick.Value > tt.high*1.001 {
				t.Errorf("a tick at %v is not between %v and %v", tick.Value, tt.low, tt.high)
			}
			if tick.Label != "" {
				labels++
			}
		}
		if labels < tt.least {
			t.Errorf("%d labels between %v and %v, want %d", labels, tt.low, tt.high, tt.least)
		}
	}
}

func TestA9TextsFillTheirWidthInWhateverFontAReaderHas(t *testing.T) {
	for _, c := range charts() {
		var svg bytes.Buffer
		if err := Draw(&svg, c, "svg"); err != nil {
			t.Fatal(err)
		}
		texts := strings.Count(svg.String(), "<text ")
		for _, each := range []string{"textLength=", "font-family:'Liberation Sans',Arial,Helvetica,sans-serif"} {
			if n := strings.Count(svg.String(), each); texts == 0 || n != texts {
				t.Errorf("%s: %d of %d texts have %q", c.Name, n, texts, each)
			}
		}
		if err := xml.Unmarshal(svg.Bytes(), new(struct{})); err != nil {
			t.Errorf("%s is no XML: %v", c.Name, err)
		}
	}
}
