package lint

import (
	"encoding/json"
	"strings"
	"testing"
)

// catalogue of few metrics of each kind.
var few = Catalogue{
	"windlass_calls_total":       {"windlass_calls_total", Counter, []string{"function_namespace", "function", "code"}},
	"windlass_moves_total":       {"windlass_moves_total", Counter, nil},
	"windlass_queued":            {"windlass_queued", Gauge, []string{"function_namespace", "function"}},
	"windlass_scheduler_held":    {"windlass_scheduler_held", Gauge, []string{"function_namespace", "function", "revision"}},
	"windlass_orphan":            {"windlass_orphan", Gauge, nil},
	"windlass_held_bytes":        {"windlass_held_bytes", Gauge, nil},
	"windlass_limit_bytes":       {"windlass_limit_bytes", Gauge, nil},
	"windlass_tick_seconds":      {"windlass_tick_seconds", Histogram, nil},
	"windlass_run_seconds":       {"windlass_run_seconds", Native, []string{"function_namespace", "function"}},
	"function:windlass_calls:5m": {"function:windlass_calls:5m", Gauge, []string{"function"}},
}

// chosen is how queries follow the variables.
const chosen = `{function_namespace=~"$namespace", function=~"$function"}`

// sound is a dashboard in which no rule finds a fault.
func sound() Dashboard {
	source := Datasource{"prometheus", "${datasource}"}
	p := Panel{
		ID: 1, Type: "timeseries", Title: "Calls", Description: "Calls in a second.", Datasource: source,
		Position: Position{0, 0, 12, 8},
		Targets:  []Target{{RefID: "A", Legend: "{{code}}", Datasource: source, Expr: `sum by (code) (rate(windlass_calls_total{function_namespace=~"$namespace", function=~"$function"}[$__rate_interval]))`}},
		Links:    []Link{{"Overview", "/d/overview?from=now"}},
	}
	p.FieldConfig.Defaults.Unit = "reqps"
	d := Dashboard{UID: "overview", Title: "Overview", Description: "All.", Tags: []string{"windlass"}, Panels: []Panel{p}}
	d.Templating.List = []Variable{{Name: "datasource", Type: "datasource"}, {Name: "namespace", Type: "query", Datasource: source}, {Name: "function", Type: "query", Datasource: source}}
	return d
}

func TestASoundDashboardHasNoFindings(t *testing.T) {
	d := sound()
	for _, finding := range append(Form(d, []string{"overview"}), Queries(d, few)...) {
		t.Error(finding)
	}
}

func TestFaultsOfFormAreFound(t *testing.T) {
	for want, spoil := range map[string]func(d *Dashboard, p *Panel){
		"no uid":                    func(d *Dashboard, _ *Panel) { d.UID = "" },
		"lacks the tag":             func(d *Dashboard, _ *Panel) { d.Tags = nil },
		"no variable for the data":  func(d *Dashboard, _ *Panel) { d.Templating.List = d.Templating.List[1:] },
		"none for namespaces":       func(d *Dashboard, _ *Panel) { d.Templating.List[1].Name = "other" },
		"is asked of \"mine\"":      func(d *Dashboard, _ *Panel) { d.Templating.List[1].Datasource.UID = "mine" },
		"it has no title":           func(_ *Dashboard, p *Panel) { p.Title = "" },
		"no sentence":               func(_ *Dashboard, p *Panel) { p.Description = "Calls" },
		"it has no unit":            func(_ *Dashboard, p *Panel) { p.FieldConfig.Defaults.Unit = "" },
		"its unit is operations":    func(_ *Dashboard, p *Panel) { p.FieldConfig.Defaults.Unit = "ops" },
		"its data source is":        func(_ *Dashboard, p *Panel) { p.Datasource.UID = "prom" },
		"data source of query A is": func(_ *Dashboard, p *Panel) { p.Targets[0].Datasource.UID = "prom" },
		"it has no query":           func(_ *Dashboard, p *Panel) { p.Targets = nil },
		"two queries are called":    func(_ *Dashboard, p *Panel) { p.Targets = append(p.Targets, p.Targets[0]) },
		"has no legend":             func(_ *Dashboard, p *Panel) { p.Targets[0].Legend = "" },
		"which is no dashboard":     func(_ *Dashboard, p *Panel) { p.Links[0].URL = "/d/gone?from=now" },
		"leads to \"/nowhere\"":     func(_ *Dashboard, p *Panel) { p.Links[0].URL = "/nowhere" },
		"asks for \"\"":             func(_ *Dashboard, p *Panel) { p.Links[0].URL = "/explore?left=1" },
		"does not fit on the grid":  func(_ *Dashboard, p *Panel) { p.Position.X = 20 },
		"it lies on":                func(d *Dashboard, p *Panel) { d.Panels = append(d.Panels, *p) },
		"is taken twice":            func(d *Dashboard, p *Panel) { d.Panels = append(d.Panels, *p) },
	} {
		t.Run(want, func(t *testing.T) {
			d := sound()
			spoil(&d, &d.Panels[0])
			expect(t, Form(d, []string{"overview"}), want)
		})
	}
}

func TestFaultsOfQueriesAreFound(t *testing.T) {
	for name, c := range map[string]struct{ expr, legend, unit, want string }{
		"no PromQL":               {`sum(rate(windlass_moves_total[$__rate_interval])`, "x", "ops", "unclosed left parenthesis"},
		"a fixed window":          {`sum(rate(windlass_moves_total[5m]))`, "x", "ops", "does not follow the panel's resolution"},
		"an unknown metric":       {`sum(windlass_gone)`, "x", "short", "no metric windlass_gone"},
		"one of several unknown":  {`sum({__name__=~"windlass_orphan|windlass_gone"})`, "x", "short", "no metric windlass_gone"},
		"an unknown label":        {`sum(windlass_orphan{zone="a"})`, "x", "short", "windlass_orphan has no label zone"},
		"a label that is missing": {`sum by (code) (windlass_queued` + chosen + `)`, "x", "short", "aggregated by code"},
		"a counter as it is":      {`sum(windlass_moves_total)`, "x", "short", "is a counter"},
		"the rate of a gauge":     {`sum(rate(windlass_orphan[$__rate_interval]))`, "x", "short", "has no rate"},
		"every scheduler's word":  {`windlass_queued` + chosen, "x", "short", "aggregate it"},
		"a sum of schedulers":     {`sum(windlass_scheduler_held` + chosen + `)`, "x", "short", "max by function and revision first"},
		"one revision of several": {`sum(max by (function_namespace, function) (windlass_scheduler_held` + chosen + `))`, "x", "short", "max by function and revision first"},
		"any namespace":           {`sum(windlass_queued{function=~"$function"})`, "x", "short", "does not follow the variable $namespace"},
		"any function of a rule":  {`sum(function:windlass_calls:5m)`, "x", "short", "does not follow the variable $function"},
		"labels that are left":    {`sum without (code) (rate(windlass_calls_total` + chosen + `[$__rate_interval]))`, "x", "reqps", "name those that are kept"},
		"a quantile without le":   {`histogram_quantile(0.9, sum(rate(windlass_tick_seconds_bucket[$__rate_interval])))`, "x", "s", "summed by le"},
		"a native histogram":      {`sum(rate(windlass_tick_seconds[$__rate_interval]))`, "x", "s", "use its classic ones"},
		"a native one as it is":   {`histogram_quantile(0.9, sum(windlass_run_seconds` + chosen + `))`, "x", "s", "take its rate or increase"},
		"buckets it has not":      {`sum(rate(windlass_run_seconds_bucket` + chosen + `[$__rate_interval]))`, "x", "s", "there is no metric"},
		"its unit":                {`histogram_quantile(0.9, sum(rate(windlass_run_seconds` + chosen + `[$__rate_interval])))`, "x", "short", `shown as "short" and are "s"`},
		"a subquery":              {`max_over_time(sum(windlass_orphan)[$__range:1m])`, "x", "short", "subquery"},
		"a legend of no label":    {`sum(windlass_orphan)`, "{{code}}", "short", "legend names code"},
		"seconds as a number":     {`histogram_quantile(0.9, sum by (le) (rate(windlass_tick_seconds_bucket[$__rate_interval])))`, "x", "short", `shown as "short" and are "s"`},
		"a mean as a number":      {`sum(rate(windlass_tick_seconds_sum[$__rate_interval])) / sum(rate(windlass_tick_seconds_count[$__rate_interval]))`, "x", "short", `and are "s"`},
		"a share as bytes":        {`windlass_held_bytes / windlass_limit_bytes`, "x", "bytes", `and are "percentunit"`},
		"parts of things":         {`sum(increase(windlass_moves_total[$__range])) or vector(0)`, "x", "short", "round it to whole ones"},
		"things shown twice":      {`round(sum(increase(windlass_moves_total[$__rate_interval])))`, "x", "short", "windows overlap"},
		"points too close":        {`sum(rate(windlass_moves_total[$__rate_interval])) * $__interval_ms / 1000`, "x", "short", `its points are "" apart, want 2m`},
		"bytes or zero":           {`sum(windlass_held_bytes) or vector(0)`, "x", "short", `and are "bytes"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := sound()
			p := &d.Panels[0]
			p.Targets[0].Expr, p.Targets[0].Legend, p.FieldConfig.Defaults.Unit = c.expr, c.legend, c.unit
			expect(t, Queries(d, few), c.want)
		})
	}
}

func TestWholeCountsAndSharesNeedNoRounding(t *testing.T) {
	const moves = `sum(increase(windlass_moves_total[$__range]))`
	for _, expr := range []string{"round(" + moves + ")", moves + " / (" + moves + " > 0)"} {
		d := sound()
		p := &d.Panels[0]
		p.Targets[0].Expr, p.Targets[0].Legend = expr, "moves"
		for _, finding := range Queries(d, few) {
			t.Error(finding)
		}
	}
}

func TestANativeHistogramNeedsNoBucketsAndHasSumAndCount(t *testing.T) {
	for _, expr := range []string{
		`histogram_quantile(0.9, sum(rate(windlass_run_seconds` + chosen + `[$__rate_interval])))`,
		`sum(rate(windlass_run_seconds_sum` + chosen + `[$__rate_interval])) / sum(rate(windlass_run_seconds_count` + chosen + `[$__rate_interval]))`,
	} {
		d := sound()
		p := &d.Panels[0]
		p.Targets[0].Expr, p.Targets[0].Legend, p.FieldConfig.Defaults.Unit = expr, "x", "s"
		for _, finding := range Queries(d, few) {
			t.Error(finding)
		}
	}
}

func TestNumbersOfOneTitleAndTwoMeaningsAreFound(t *testing.T) {
	one, other := sound(), sound()
	one.Panels[0].Type, other.Panels[0].Type = "stat", "stat"
	if found := Alike([]Dashboard{one, other}); len(found) > 0 {
		t.Errorf("equal numbers are found: %v", found)
	}
	other.Panels[0].Targets[0].Expr = `sum(windlass_orphan)`
	expect(t, Alike([]Dashboard{one, other}), "another query under this title")
}

func TestRowsOfTablesAreAggregated(t *testing.T) {
	d := sound()
	target := &d.Panels[0].Targets[0]
	target.Format, target.Expr, target.Legend = "table", `function:windlass_calls:5m{function=~"$function"} >= 0`, ""
	expect(t, Queries(d, few), "keep the metric's name")
}

func TestAnOverrideHasAUnitOfItsOwn(t *testing.T) {
	d := sound()
	p := &d.Panels[0]
	p.Targets[0].Expr, p.Targets[0].Legend = `sum(windlass_held_bytes)`, "held"
	var o Override
	if err := json.Unmarshal([]byte(`{"matcher": {"id": "byName", "options": "held"}, "properties": [{"id": "unit", "value": "bytes"}]}`), &o); err != nil {
		t.Fatal(err)
	}
	p.FieldConfig.Overrides = []Override{o}
	for _, finding := range Queries(d, few) {
		t.Error(finding)
	}
}

func TestMetricsAreReadFromTheirTables(t *testing.T) {
	catalogue, err := FromDocs("# Metrics\n\n| name | type | labels | meaning |\n|---|---|---|---|\n" +
		"| `windlass_calls_total` | counter | function_namespace, function | Calls. |\n| `windlass_tick_seconds` | histogram | | Ticks. |\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := catalogue["windlass_calls_total"]; got.Kind != Counter || strings.Join(got.Labels, " ") != "function_namespace function" {
		t.Errorf("the counter is read as %+v", got)
	}
	if bucket, ok := catalogue.find("windlass_tick_seconds_bucket"); !ok || bucket.Kind != Counter || bucket.Labels[0] != "le" {
		t.Errorf("the bucket is %+v, %v", bucket, ok)
	}
	if _, ok := catalogue.find("windlass_calls_total_bucket"); ok {
		t.Error("a counter has buckets")
	}
	if err := catalogue.AddRules([]byte("groups: [{rules: [{record: 'function_namespace_code:x:rate5m', expr: 'sum by (function_namespace, code) (x)'}, {alert: A, expr: x}]}]")); err != nil {
		t.Fatal(err)
	}
	if got := catalogue["function_namespace_code:x:rate5m"].Labels; strings.Join(got, " ") != "function_namespace code" {
		t.Errorf("the rule has the labels %v", got)
	}
	for _, rule := range []string{"{record: flat, expr: sum by (code) (x)}", "{record: 'zone:x:sum', expr: sum by (code) (x)}", "{record: 'code:x:sum', expr: '('}"} {
		if err := catalogue.AddRules([]byte("groups: [{rules: [" + rule + "]}]")); err == nil {
			t.Errorf("the rule %s is accepted", rule)
		}
	}
	for _, text := range []string{"no table", "| name | labels |\n|---|---|\n| `windlass_x` | |\n"} {
		if _, err := FromDocs(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func expect(t *testing.T, found []Finding, want string) {
	t.Helper()
	for _, finding := range found {
		if strings.Contains(finding.String(), want) {
			return
		}
	}
	t.Errorf("want a finding with %q, got %v", want, found)
}
