package main

import (
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/metric"
)

func TestThePageHasARowForEachDeclaration(t *testing.T) {
	var set metric.Set
	set.Counter("windlass_bytes_total", "Bytes a|b.", "function_namespace", "function")
	set.Histogram("windlass_took_seconds", "What it took.", []float64{1})
	var page strings.Builder
	if err := write(&page, []section{{"Things", "About them.", []*metric.Set{&set}}}); err != nil {
		t.Fatal(err)
	}
	want := "\n## Things\n\nAbout them.\n\n" +
		"| metric | type | unit | labels | meaning |\n|---|---|---|---|---|\n" +
		"| `windlass_bytes_total` | counter | bytes | function_namespace, function | Bytes a\\|b. |\n" +
		"| `windlass_took_seconds` | histogram | seconds |  | What it took. |\n"
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
