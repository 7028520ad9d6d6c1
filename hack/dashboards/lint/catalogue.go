package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// Kind is a type of metric, as Prometheus calls them.
type Kind string

// The kinds that there are. A recording rule's series is a gauge, whatever it is made of.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	// Native has no classic buckets.
	Native Kind = "native histogram"
)

// Metric is what a query may name.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
}

// Catalogue has every metric by name.
type Catalogue map[string]Metric

// foreign are series that others make: Go's client library, and Prometheus itself.
var foreign = []Metric{
	{Name: "process_cpu_seconds_total", Kind: Counter},
	{Name: "process_resident_memory_bytes", Kind: Gauge},
	{Name: "ALERTS", Kind: Gauge, Labels: []string{"alertname", "alertstate", "severity", "function_namespace", "function"}},
}

// ofTarget are the labels that a scrape adds, in this project's monitors or by hand.
var ofTarget = []string{"job", "instance", "namespace", "component", "pod", "node", nameLabel}

var code = regexp.MustCompile("`([^`]+)`")

// FromDocs reads the tables of docs/metrics.md: rows whose first cell is a metric, below a
// heading with the columns "type" and "labels".
func FromDocs(markdown string) (Catalogue, error) {
	catalogue := Catalogue{}
	for _, metric := range foreign {
		catalogue[metric.Name] = metric
	}
	var heading []string
	for line := range strings.Lines(markdown) {
		cells := cellsOf(line)
		if cells == nil {
			heading = nil
			continue
		}
		if heading == nil {
			heading = cells
			continue
		}
		name := code.FindStringSubmatch(cells[0])
		if name == nil || !strings.HasPrefix(name[1], "windlass_") {
			continue
		}
		metric := Metric{Name: name[1]}
		for i, title := range heading[:min(len(heading), len(cells))] {
			switch strings.ToLower(title) {
			case "type":
				metric.Kind = Kind(strings.Trim(cells[i], "`"))
			case "labels":
				metric.Labels = labelsOf(cells[i])
			}
		}
		if !slices.Contains([]Kind{Counter, Gauge, Histogram, Native}, metric.Kind) {
			return nil, fmt.Errorf("docs/metrics.md: %s is a %q: want counter, gauge, histogram or native histogram in a column called type", metric.Name, metric.Kind)
		}
		catalogue[metric.Name] = metric
	}
	if len(catalogue) == len(foreign) {
		return nil, fmt.Errorf("docs/metrics.md: there is no table of metrics")
	}
	return catalogue, nil
}

// cellsOf splits a row of a table, or returns nil for any other line.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func labelsOf(cell string) []string {
	return strings.FieldsFunc(cell, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z')
	})
}

// AddRules adds the series that recording rules make. By convention a rule is called
// LEVEL:METRIC:OPERATION, where the level is the labels that its expression keeps, joined by
// underscores.
func (c Catalogue) AddRules(text []byte) error {
	var file struct {
		Groups []struct {
			Rules []struct {
				Record string `yaml:"record"`
				Expr   string `yaml:"expr"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("reading recording rules: %w", err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Record == "" {
				continue
			}
			expr, err := language.ParseExpr(rule.Expr)
			if err != nil {
				return fmt.Errorf("the recording rule %s: %w", rule.Record, err)
			}
			kept, _ := keptLabels(expr)
			kept = slices.DeleteFunc(slices.Clone(kept), func(label string) bool { return label == "le" && isQuantile(expr) })
			if level, _, _ := strings.Cut(rule.Record, ":"); level != strings.Join(kept, "_") {
				return fmt.Errorf("the recording rule %s keeps the labels %v: want LEVEL:METRIC:OPERATION with them as the level", rule.Record, kept)
			}
			c[rule.Record] = Metric{Name: rule.Record, Kind: Gauge, Labels: kept}
		}
	}
	return nil
}

// isQuantile says that the bounds of buckets are gone from what an expression yields.
func isQuantile(expr parser.Expr) bool {
	call, is := expr.(*parser.Call)
	return is && call.Func.Name == "histogram_quantile"
}

// find takes a series for the metric that it is of, such as a bucket for its histogram.
func (c Catalogue) find(series string) (Metric, bool) {
	if metric, ok := c[series]; ok {
		return metric, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		name, cut := strings.CutSuffix(series, suffix)
		if metric, ok := c[name]; cut && ok && (metric.Kind == Histogram || metric.Kind == Native && suffix != "_bucket") {
			part := Metric{Name: series, Kind: Counter, Labels: metric.Labels}
			if suffix == "_bucket" {
				part.Labels = append([]string{"le"}, metric.Labels...)
			}
			return part, true
		}
	}
	return Metric{}, false
}
