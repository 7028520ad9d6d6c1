package dashboard

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = `{
  "title": "Overview",
  "panels": [
    {"title": "Calls", "type": "timeseries", "targets": [
      {"expr": "sum(rate(calls_total{function_namespace=~\"$namespace\"}[$__rate_interval]))", "datasource": {"type": "prometheus", "uid": "${datasource}"}},
      {"expr": "hidden", "hide": true},
      {"query": "{}", "datasource": {"type": "tempo"}, "expr": "{ traces }"}
    ]},
    {"title": "More", "type": "row", "panels": [
      {"title": "Now", "targets": [{"expr": "up", "instant": true, "datasource": "old"}]}
    ]},
    {"title": "Words", "type": "text"}
  ],
  "annotations": {"list": [{"name": "deploys", "target": {"expr": "changes(x[5m])"}}]},
  "templating": {"list": [
    {"name": "datasource", "type": "datasource", "query": "prometheus"},
    {"name": "namespace", "type": "query", "query": "label_values(calls_total, function_namespace)"},
    {"name": "function", "type": "query", "query": {"query": "label_values(calls_total{function_namespace=~\"$namespace\", a=\"b\"}, function)", "refId": "A"}},
    {"name": "any", "type": "query", "query": "label_values(pod)"},
    {"name": "top", "type": "query", "query": "query_result(topk(3, up))"}
  ]}
}`

func TestParseFindsEveryQueryOfPrometheus(t *testing.T) {
	got, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := []Query{
		{Dashboard: "Overview", Panel: "Calls", Expr: `sum(rate(calls_total{function_namespace=~"$namespace"}[$__rate_interval]))`},
		{Dashboard: "Overview", Panel: "Now", Expr: "up", Instant: true},
		{Dashboard: "Overview", Panel: "annotation deploys", Expr: "changes(x[5m])"},
		{Dashboard: "Overview", Panel: "variable namespace", Expr: "calls_total", Instant: true},
		{Dashboard: "Overview", Panel: "variable function", Expr: `calls_total{function_namespace=~"$namespace", a="b"}`, Instant: true},
		{Dashboard: "Overview", Panel: "variable top", Expr: "topk(3, up)", Instant: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVariablesAreReplacedInEachSpelling(t *testing.T) {
	q := Query{Expr: `a{x=~"$ns",y="${fn}",z=~"${fn:regex}",c="${1}xx$2"}[$__rate_interval]`}
	got, err := q.Replace(map[string]string{"ns": ".*", "fn": "web", "__rate_interval": "1m"})
	if want := `a{x=~".*",y="web",z=~"web",c="${1}xx$2"}[1m]`; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := q.Replace(map[string]string{"ns": ".*", "__rate_interval": "1m"}); err == nil || !strings.Contains(err.Error(), "fn") {
		t.Errorf("a variable without a value: %v", err)
	}
}

func TestReadAllNamesTheFileThatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{"a.json": text, "b.json": `{"panels": []}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadAll(folder); err == nil || !strings.Contains(err.Error(), "b.json") {
		t.Errorf("a dashboard without a title: %v", err)
	}
	if err := os.Remove(filepath.Join(folder, "b.json")); err != nil {
		t.Fatal(err)
	}
	if all, err := ReadAll(folder); err != nil || len(all) != 6 {
		t.Errorf("%d queries, %v", len(all), err)
	}
}
