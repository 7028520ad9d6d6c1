package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/test/monitoring/prometheus"
	"github.com/windlass-dev/windlass/test/monitoring/rulefile"
)

const (
	root     = "../.."
	rulesDir = root + "/charts/windlass/rules"
)

func alerts(t *testing.T) []rulefile.Rule {
	t.Helper()
	rules, err := rulefile.Read(rulesDir + "/alerts.yaml")
	if err != nil || len(rules) < 10 {
		t.Fatalf("%d alerts, %v", len(rules), err)
	}
	return rules
}

// An operator who is woken by an alert must find a page, and no page may speak of an alert
// that is gone.
func TestEveryAlertHasARunbookTestsAndAScenario(t *testing.T) {
	var want []string
	for _, a := range alerts(t) {
		want = append(want, a.Alert)
	}
	slices.Sort(want)
	var scenarios []string
	for _, s := range append(functionScenarios(), componentScenarios()...) {
		scenarios = append(scenarios, s.alert)
	}
	slices.Sort(scenarios)
	for what, got := range map[string][]string{
		"runbooks":           namesOfFiles(t, root+"/docs/runbooks/*.md"),
		"promtool's tests":   slices.DeleteFunc(namesOfFiles(t, "alerts/*.yaml"), func(n string) bool { return n == "recording" || n == "bars" }),
		"scenarios":          scenarios,
		"docs/monitoring.md": inTable(t, root+"/docs/monitoring.md"),
	} {
		if !slices.Equal(want, got) {
			t.Errorf("%s are of %v, alerts are %v", what, got, want)
		}
	}
}

func TestAlertsAreChosenByName(t *testing.T) {
	for list, want := range map[string]bool{
		"": true, "TickLag": true, "WindlassTickLag,NoCapacity": true,
		"TickLagg": false, "TickLag,": false, "NoCapacity,ticklag": false,
	} {
		if err := checkAlerts(list); (err == nil) != want {
			t.Errorf("%q: %v", list, err)
		}
	}
}

func TestThePartWithoutAlertsTakesNoAlerts(t *testing.T) {
	if _, err := (options{part: demoPart, alerts: "TickLag", factor: 1}).main(); err == nil {
		t.Error("nothing was run, and all was well")
	}
}

func namesOfFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)))
	}
	return names
}

// inTable are the alerts in a page's table.
func inTable(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, found := range regexp.MustCompile(`(?m)^\| \[(Windlass\w+)\]\(runbooks/\w+\.md\) \|`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return names
}

func TestEveryAlertSaysWhatWhoAndWhereToRead(t *testing.T) {
	for _, a := range alerts(t) {
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has the severity %q", a.Alert, s)
		}
		if want := "https://github.com/windlass-dev/windlass/blob/main/docs/runbooks/" + a.Alert + ".md"; a.Annotations["runbook_url"] != want {
			t.Errorf("%s has the runbook_url %q", a.Alert, a.Annotations["runbook_url"])
		}
		for _, text := range []string{a.Annotations["summary"], a.Annotations["description"]} {
			if !strings.Contains(text, "$labels.") {
				t.Errorf("%s does not name what it is about: %q", a.Alert, text)
			}
		}
		if a.For == "" {
			t.Errorf("%s fires at once", a.Alert)
		}
	}
}

func TestEveryRunbookAnswersTheSameQuestions(t *testing.T) {
	for _, name := range namesOfFiles(t, root+"/docs/runbooks/*.md") {
		text, err := os.ReadFile(root + "/docs/runbooks/" + name + ".md")
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, heading := range []string{"# " + name, "## What it means", "## What callers feel", "## How to see", "## What to do", "## When to ignore"} {
			i := strings.Index(string(text)[at:], heading+"\n")
			if i < 0 {
				t.Errorf("%s has no %q in its place", name, heading)
				continue
			}
			at += i
		}
	}
}

func TestRunbooksAreAskedOfAnyFunction(t *testing.T) {
	t.Chdir(root)
	asked, err := runbooks("docs/runbooks")
	if err != nil || len(asked) < 20 {
		t.Fatalf("%d queries, %v", len(asked), err)
	}
	for _, q := range asked {
		if strings.Contains(q.Expr, `"team"`) || strings.Contains(q.Expr, `\|`) {
			t.Errorf("%s asks only of the example: %s", q, q.Expr)
		}
		if _, err := q.Replace(q.values("web")); err != nil {
			t.Error(err)
		}
	}
}

func TestSeriesAreQuietWithAllTheirParts(t *testing.T) {
	q := silencedQueries{"windlass_a_seconds": true}
	for name, want := range map[string]bool{
		"windlass_a_seconds": true, "windlass_a_seconds_bucket": true, "windlass_a_seconds_count": true, "windlass_a": false, "windlass_b_bucket": false,
	} {
		if got := q.allows(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A text that prints the wrong label of a node must not pass for the right one.
func TestAScenarioKnowsTheNodeFromItsAgent(t *testing.T) {
	values := map[string]string{}
	for label, value := range nodeTarget().Labels {
		if other, twice := values[value]; twice {
			t.Errorf("the labels %s and %s of the node are both %s", label, other, value)
		}
		values[value] = label
	}
	all := functionScenarios()
	busy := all[slices.IndexFunc(all, func(s scenario) bool { return s.alert == "WindlassNodeBusyLong" })]
	for summary, want := range map[string]bool{"Node " + nodeTarget().Labels["node"] + " has been busy.": true, "Node " + nodeTarget().Labels["pod"] + " has been busy.": false} {
		a := &prometheus.Alert{Annotations: map[string]string{"summary": summary}}
		if err := busy.checkSummary(a); (err == nil) != want {
			t.Errorf("%q is right: %t, want %t", summary, err == nil, want)
		}
	}
}
