package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/windlass-dev/windlass/internal/metric"
)

const chart = "../../charts/windlass"

// expectBound wants a number that a histogram's quantiles are compared with to be one of its
// bounds: between two bounds a quantile is a guess, and may lie on the wrong side of the number.
func expectBound(t *testing.T, where, histogram, number string) {
	t.Helper()
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		t.Fatalf("%s: %v", where, err)
	}
	for _, s := range sections {
		for _, set := range s.sets {
			for _, d := range set.All() {
				if d.Name == histogram && d.Kind == metric.KindHistogram && slices.Contains(d.Buckets, value) {
					return
				}
			}
		}
	}
	t.Errorf("%s: %s is no bound of %s", where, number, histogram)
}

func TestQuantilesAreComparedWithBounds(t *testing.T) {
	comparison := regexp.MustCompile(`histogram_quantile\(.*?(windlass_[a-z_]+)_bucket.*\)\s*> ([0-9.]+)`)
	for _, file := range []string{chart + "/rules/alerts.yaml", "../../docs/operations.md"} {
		found := comparison.FindAllStringSubmatch(string(read(t, file)), -1)
		if len(found) == 0 {
			t.Errorf("%s compares no quantile", file)
		}
		for _, c := range found {
			expectBound(t, file, c[1], c[2])
		}
	}
}

// An alert that is tested with bounds of the test's own may fail with the program's.
func TestAlertsAreTestedWithBounds(t *testing.T) {
	bucket := regexp.MustCompile(`(windlass_[a-z_]+)_bucket\{[^}]*le="([0-9.]+)"`)
	for _, file := range glob(t, "../../test/monitoring/alerts/*.yaml") {
		for _, series := range bucket.FindAllStringSubmatch(string(read(t, file)), -1) {
			expectBound(t, file, series[1], series[2])
		}
	}
}

func TestLimitsOfPanelsAreBounds(t *testing.T) {
	quantile := regexp.MustCompile(`^histogram_quantile\(.*?(windlass_[a-z_]+)_bucket`)
	for _, file := range glob(t, chart+"/dashboards/*.json") {
		var board struct {
			Panels []struct {
				Title       string
				Targets     []struct{ Expr string }
				FieldConfig struct {
					Defaults struct {
						Thresholds struct{ Steps []struct{ Value *float64 } }
					}
				}
			}
		}
		if err := json.Unmarshal(read(t, file), &board); err != nil {
			t.Fatal(err)
		}
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				of := quantile.FindStringSubmatch(target.Expr)
				for _, step := range panel.FieldConfig.Defaults.Thresholds.Steps {
					if of != nil && step.Value != nil {
						expectBound(t, filepath.Base(file)+", "+panel.Title, of[1], strconv.FormatFloat(*step.Value, 'g', -1, 64))
					}
				}
			}
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}
