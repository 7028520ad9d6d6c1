package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Query is one query of a panel, with its variables.
type Query struct {
	// Dashboard and Panel are titles. Panel is "variable NAME" for a query
	// that fills a variable, and "annotation NAME" for one of annotations.
	Dashboard, Panel string
	Expr             string
	// Instant says that only the latest value is asked for.
	Instant bool
}

// String names the query in messages.
func (q Query) String() string { return q.Dashboard + " / " + q.Panel }

// model is what is read of Grafana's format.
type model struct {
	Title      string `json:"title"`
	Panels     []panel
	Templating struct {
		List []struct {
			Name, Type string
			Query      json.RawMessage
		}
	}
	Annotations struct {
		List []struct {
			Name, Expr string
			Target     target
		}
	}
}

type panel struct {
	Title   string
	Targets []target
	// Panels are those of a row that is folded.
	Panels []panel
}

type target struct {
	Expr       string
	Instant    bool
	Hide       bool
	Datasource datasource
}

// datasource is an object, or in older dashboards a name.
type datasource struct{ Type string }

// UnmarshalJSON implements json.Unmarshaler.
func (d *datasource) UnmarshalJSON(text []byte) error {
	type plain datasource
	if len(text) > 0 && text[0] == '{' {
		return json.Unmarshal(text, (*plain)(d))
	}
	return nil
}

// ReadAll returns the queries of all dashboards of a folder, by file name.
func ReadAll(folder string) ([]Query, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var all []Query
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		queries, err := Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, queries...)
	}
	return all, nil
}

// Parse returns the queries of one dashboard that go to Prometheus.
func Parse(text []byte) ([]Query, error) {
	var m model
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.Title == "" {
		return nil, fmt.Errorf("the dashboard has no title")
	}
	queries := ofPanels(m.Title, m.Panels)
	for _, a := range m.Annotations.List {
		for _, expr := range []string{a.Expr, a.Target.Expr} {
			if expr != "" {
				queries = append(queries, Query{Dashboard: m.Title, Panel: "annotation " + a.Name, Expr: expr})
			}
		}
	}
	for _, v := range m.Templating.List {
		if v.Type != "query" {
			continue
		}
		if expr := selector(v.Query); expr != "" {
			queries = append(queries, Query{Dashboard: m.Title, Panel: "variable " + v.Name, Expr: expr, Instant: true})
		}
	}
	return queries, nil
}

func ofPanels(title string, panels []panel) []Query {
	var queries []Query
	for _, p := range panels {
		for _, t := range p.Targets {
			if t.Expr == "" || t.Hide || t.Datasource.Type != "" && t.Datasource.Type != "prometheus" {
				continue
			}
			queries = append(queries, Query{Dashboard: title, Panel: p.Title, Expr: t.Expr, Instant: t.Instant})
		}
		queries = append(queries, ofPanels(title, p.Panels)...)
	}
	return queries
}

var labelValues = regexp.MustCompile(`^label_values\((?:(.*),)?\s*[a-zA-Z_]\w*\s*\)$`)

// selector is what a variable's query looks for values in: label_values(X, label)
// asks for X, and query_result(X) too. A query is a text, or an object with one.
func selector(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		var object struct{ Query string }
		if json.Unmarshal(raw, &object) != nil {
			return ""
		}
		text = object.Query
	}
	text = strings.TrimSpace(text)
	if found := labelValues.FindStringSubmatch(text); found != nil {
		return strings.TrimSpace(found[1])
	}
	if inner, ok := strings.CutPrefix(text, "query_result("); ok {
		return strings.TrimSuffix(inner, ")")
	}
	return ""
}

// variable matches $name, ${name} and ${name:format}. What begins with a digit is a
// group of a regular expression, and left as it is.
var variable = regexp.MustCompile(`\$(?:\{([a-zA-Z_]\w*)(?::\w+)?\}|([a-zA-Z_]\w*))`)

// Replace puts values in the place of variables. A variable without a value is an
// error, as it would be sent as it stands.
func (q Query) Replace(values map[string]string) (string, error) {
	var missing []string
	expr := variable.ReplaceAllStringFunc(q.Expr, func(v string) string {
		found := variable.FindStringSubmatch(v)
		name := found[1] + found[2]
		value, known := values[name]
		if !known {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("%s: no value for the variables %v", q, missing)
	}
	return expr, nil
}
