package doccheck

import (
	"go/ast"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// metricsPage is generated of the declarations that its generator knows, so what can be
// wrong with it is that there are others.
const metricsPage = "docs/metrics.md"

func TestMetricsAreDocumentedAndExist(t *testing.T) {
	inCode, inTable := metricsInCode(t), map[string]bool{}
	page := read(t, filepath.Join(root, metricsPage))
	for _, row := range regexp.MustCompile("(?m)^\\| `(windlass_[a-z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		inTable[row[1]] = true
	}
	if len(inCode) < 10 {
		t.Fatalf("found only the metrics %v in the code", slices.Sorted(maps.Keys(inCode)))
	}
	for _, name := range slices.Sorted(maps.Keys(inCode)) {
		if !inTable[name] {
			t.Errorf("%s has no row for the metric %s of %s: is its Set in internal/metricsdoc?", metricsPage, name, inCode[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(inTable)) {
		if inCode[name] == "" {
			t.Errorf("%s has a row for the metric %s, which no code declares", metricsPage, name)
		}
	}
	eachPage(t, func(t *testing.T, _, text string) {
		for _, name := range regexp.MustCompile(`windlass_[a-z]+(?:_[a-z]+)+`).FindAllString(text, -1) {
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
			if inCode[name] == "" && inCode[base] == "" {
				t.Errorf("there is no metric %s", name)
			}
		}
	})
}

// A collector that is made of anything but a declaration would be in no table.
func TestCollectorsAreMadeOfDeclarations(t *testing.T) {
	maker := regexp.MustCompile(`^New(Counter|Gauge|Histogram|Summary|Untyped|Desc)`)
	found := 0
	eachPackageFile(t, func(path string, file *ast.File) {
		declares := strings.HasSuffix(filepath.ToSlash(filepath.Dir(path)), "internal/metric")
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok || !maker.MatchString(selector.Sel.Name) {
				return true
			}
			if from, ok := selector.X.(*ast.Ident); !ok || from.Name != "prometheus" && from.Name != "promauto" {
				return true
			}
			found++
			if !declares {
				t.Errorf("%s makes a metric by %s: declare it in a metric.Set", path, selector.Sel.Name)
			}
			return true
		})
	})
	if found == 0 {
		t.Error("found not even those of internal/metric")
	}
}

// metricsInCode are the names of the metrics that packages declare, and the file of
// each. A name is a text that begins with windlass_.
func metricsInCode(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	eachPackageFile(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			if expr, ok := n.(ast.Expr); ok {
				if name := textOf(expr); regexp.MustCompile(`^windlass_[a-z_]*[a-z]$`).MatchString(name) {
					found[name] = path
				}
			}
			return true
		})
	})
	return found
}

// eachPackageFile parses the code of which programs consist.
func eachPackageFile(t *testing.T, use func(path string, file *ast.File)) {
	t.Helper()
	for _, top := range []string{"pkg", "internal", "cmd"} {
		eachFile(t, top, use)
	}
}
