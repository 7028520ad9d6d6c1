package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const (
	root  = "../../.."
	chart = root + "/charts/windlass"
)

// dashboards reads those of the chart.
func dashboards(t *testing.T) []Dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "dashboards", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []Dashboard
	for _, file := range files {
		d, err := Parse(read(t, file))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, d)
	}
	if len(all) < 6 {
		t.Fatalf("found only %d dashboards", len(all))
	}
	return all
}

// metrics reads what there is: the code's metrics and the chart's recording rules.
func metrics(t *testing.T) Catalogue {
	t.Helper()
	catalogue, err := FromDocs(string(read(t, root+"/docs/metrics.md")))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(chart, "rules", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the chart has no rules (%v)", err)
	}
	for _, file := range files {
		if err := catalogue.AddRules(read(t, file)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return catalogue
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestDashboardsSayWhatTheyShow(t *testing.T) {
	all := dashboards(t)
	var uids []string
	for _, d := range all {
		if slices.Contains(uids, d.UID) {
			t.Errorf("two dashboards have the uid %s", d.UID)
		}
		uids = append(uids, d.UID)
	}
	for _, d := range all {
		for _, finding := range Form(d, uids) {
			t.Error(finding)
		}
	}
}

func TestQueriesMeanWhatTheyShow(t *testing.T) {
	catalogue := metrics(t)
	for _, d := range dashboards(t) {
		for _, finding := range Queries(d, catalogue) {
			t.Error(finding)
		}
	}
}

func TestNumbersOfOneTitleMeanTheSame(t *testing.T) {
	for _, finding := range Alike(dashboards(t)) {
		t.Error(finding)
	}
}

// What a panel does not name of a call's time counts as what Windlass costs.
func TestPhasesThatWindlassDoesNotCostAreNamed(t *testing.T) {
	panels := 0
	for _, d := range dashboards(t) {
		for _, p := range d.Charts() {
			if len(p.Targets) == 0 || !strings.Contains(p.Targets[0].Expr, "sum by (phase) (rate(windlass_gateway_phase_seconds_total") {
				continue
			}
			panels++
			for _, phase := range []string{"*queue*", "*core*", "*execute*"} {
				if !strings.Contains(p.Description, phase) {
					t.Errorf("%s, %s: the description does not say what %s is", d.Title, p.Title, phase)
				}
			}
		}
	}
	if panels == 0 {
		t.Error("no panel shows phases")
	}
}

// TestQuietSeriesAreShown wants the list of series that are seldom there to name none
// that does not exist or that no dashboard shows.
func TestQuietSeriesAreShown(t *testing.T) {
	var quiet []struct{ Series, Until, In string }
	if err := yaml.Unmarshal(read(t, chart+"/dashboards/quiet.yaml"), &quiet); err != nil {
		t.Fatal(err)
	}
	if len(quiet) == 0 {
		t.Fatal("the list is empty")
	}
	catalogue := metrics(t)
	var queries strings.Builder
	for _, d := range dashboards(t) {
		for _, p := range d.Charts() {
			for _, target := range p.Targets {
				queries.WriteString(target.Expr + "\n")
			}
		}
	}
	for _, entry := range quiet {
		if _, known := catalogue[entry.Series]; !known {
			t.Errorf("there is no metric %s", entry.Series)
		}
		if !strings.Contains(queries.String(), entry.Series) {
			t.Errorf("no dashboard shows %s", entry.Series)
		}
		if entry.Until == "" || entry.In != "" && entry.In != "cluster" {
			t.Errorf("%s: until %q, in %q", entry.Series, entry.Until, entry.In)
		}
	}
}
