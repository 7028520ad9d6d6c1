package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/windlass-dev/windlass/test/monitoring/dashboard"
	"github.com/windlass-dev/windlass/test/monitoring/rulefile"
)

// question is a query that somebody is told to ask.
type question struct{ dashboard.Query }

// key tells the question from others.
func (q question) key() string { return q.String() + ": " + q.Expr }

// ofRunbook says that it is asked when something is wrong, and may be empty if not.
func (q question) ofRunbook() bool { return strings.HasSuffix(q.Dashboard, ".md") }

// interval stands for $__rate_interval: what Grafana makes of a scrape every second
// is shorter than what the rates of quiet functions need.
const interval = "20s"

// values are what stands for the variables of dashboards.
func (q question) values(function string) map[string]string {
	return map[string]string{
		"namespace": ".+", "function": function, "node": ".+", "job": ".+", "pod": ".+", "instance": ".+", "component": ".+",
		"__rate_interval": interval, "__interval": interval, "__interval_ms": "20000", "__range": "1m", "__range_s": "60",
	}
}

// questions are all queries of dashboards, recording rules and runbooks.
func questions() ([]question, error) {
	var all []question
	queries, err := dashboard.ReadAll("charts/windlass/dashboards")
	if err != nil {
		return nil, err
	}
	for _, q := range queries {
		// A table leaves zeros out, and there may be nothing else just then.
		q.Expr = strings.TrimSuffix(q.Expr, " > 0")
		all = append(all, question{q})
	}
	files, err := rulefile.OfChart()
	if err != nil {
		return nil, err
	}
	rules, err := rulefile.Read(files...)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		if r.Record != "" {
			all = append(all, question{dashboard.Query{Dashboard: "recording rules", Panel: r.Record, Expr: r.Expr}})
		}
	}
	asked, err := runbooks("docs/runbooks")
	return append(all, asked...), err
}

// row is a row of a runbook's table of queries.
var row = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .+ \\|$")

// elsewhere are the prefixes of series that others have: etcd, kubelets, and what
// the operator adds.
var elsewhere = regexp.MustCompile(`\b(etcd_|container_)`)

// example is the function that runbooks speak of.
var example = strings.NewReplacer(`function_namespace="team"`, `function_namespace=~"$namespace"`, `function="web"`, `function=~"$function"`, `\|`, "|")

// runbooks are the queries of the runbooks, asked of any function.
func runbooks(folder string) ([]question, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	if err != nil {
		return nil, err
	}
	var all []question
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		_, how, _ := strings.Cut(string(text), "## How to see")
		how, _, _ = strings.Cut(how, "## What to do")
		for i, found := range row.FindAllStringSubmatch(how, -1) {
			expr := example.Replace(found[1])
			if !strings.Contains(expr, "_") || elsewhere.MatchString(expr) {
				continue // A reason or a phase; or nothing of Windlass.
			}
			all = append(all, question{dashboard.Query{Dashboard: filepath.Base(file), Panel: fmt.Sprint("query ", i+1), Expr: expr}})
		}
	}
	return all, nil
}

// names matches the series of Windlass, and those that its rules record.
var names = regexp.MustCompile(`\b(?:\w+:)?windlass_\w+(?::\w+)?`)

// namesIn are the names of the series that questions ask of.
func namesIn(questions []question) map[string]bool {
	found := make(map[string]bool)
	for _, q := range questions {
		for _, name := range names.FindAllString(q.Expr, -1) {
			found[name] = true
		}
	}
	return found
}

// silencedQueries are series that need not be there while all is well.
type silencedQueries map[string]bool

// allows says that a series, or a part of a histogram, may be missing.
func (q silencedQueries) allows(name string) bool {
	for _, part := range []string{"", "_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, part); ok && q[base] {
			return true
		}
	}
	return false
}

// readQuiet reads the series that are quiet, or with unprovoked only those of them
// that nothing here brings about, for the reason that the file gives.
func readQuiet(unprovoked bool) (silencedQueries, error) {
	text, err := os.ReadFile("charts/windlass/dashboards/quiet.yaml")
	if err != nil {
		return nil, err
	}
	var entries []struct{ Series, Until, Unprovoked string }
	if err := yaml.Unmarshal(text, &entries); err != nil {
		return nil, err
	}
	q := silencedQueries{}
	for _, e := range entries {
		if !unprovoked || e.Unprovoked != "" {
			q[e.Series] = true
		}
	}
	return q, nil
}
