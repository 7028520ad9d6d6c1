package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/metric"
)

func TestThePageHasARowForEachDeclaration(t *testing.T) {
	var set metric.Set
	set.Counter(metric.Stable, "windlass_bytes_total", "Bytes a|b.", "function_namespace", "function")
	set.Histogram(metric.Stable, "windlass_took_seconds", "What it took.", []float64{1})
	var page strings.Builder
	if err := write(&page, []section{{"Things", "About them.", []*metric.Set{&set}}}); err != nil {
		t.Fatal(err)
	}
	want := "\n## Things\n\nAbout them.\n\n" +
		"| metric | type | unit | labels | stability | meaning |\n|---|---|---|---|---|---|\n" +
		"| `windlass_bytes_total` | counter | bytes | function_namespace, function | stable | Bytes a\\|b. |\n" +
		"| `windlass_took_seconds` | histogram | seconds |  | stable | What it took. |\n"
	if !strings.HasSuffix(page.String(), want) {
		t.Errorf("it ends in %q", page.String()[len(preface):])
	}
}

// Two packages that declare the same metric would not run in one program.
func TestNoMetricIsDeclaredTwice(t *testing.T) {
	seen := map[string]string{}
	for _, s := range sections {
		for _, set := range s.sets {
			for _, d := range set.All() {
				if other, twice := seen[d.Name]; twice {
					t.Errorf("%s is of %q and of %q", d.Name, other, s.title)
				}
				seen[d.Name] = s.title
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("found only %v", seen)
	}
}

// An alert that asks for what may change would fall silent.
func TestAlertsAskOnlyForStableMetrics(t *testing.T) {
	rules, err := os.ReadFile("../../charts/windlass/rules/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	stability := map[string]metric.Stability{}
	for _, s := range sections {
		for _, set := range s.sets {
			for _, d := range set.All() {
				stability[d.Name] = d.Stability
			}
		}
	}
	asked := regexp.MustCompile(`windlass_[a-z_]+`).FindAllString(string(rules), -1)
	if len(asked) < 10 {
		t.Fatalf("found only %v", asked)
	}
	for _, name := range asked {
		if got := stability[strings.TrimSuffix(name, "_bucket")]; got != metric.Stable {
			t.Errorf("an alert asks for %s, which is %v", name, got)
		}
	}
}
