package lint

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// columns is how wide the grid is.
const columns = 24

// Form returns what is wrong with a dashboard apart from its queries. Others are the
// identifiers of the dashboards that its links may lead to.
func Form(d Dashboard, others []string) []Finding {
	var found []Finding
	report := func(panel, format string, args ...any) {
		found = append(found, Finding{d.Title, panel, fmt.Sprintf(format, args...)})
	}
	if d.UID == "" || d.Title == "" || d.Description == "" {
		report("", "it has no uid, title or description")
	}
	if !slices.Contains(d.Tags, "windlass") {
		report("", "it lacks the tag windlass, by which dashboards link to each other")
	}
	variables(d, report)
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			report(p.Title, "the id %d is taken twice", p.ID)
		}
		ids[p.ID] = true
	}
	for _, p := range d.Charts() {
		if titles[p.Title] {
			report(p.Title, "the title is taken twice")
		}
		titles[p.Title] = true
		words(p, report)
		sources(p, report)
		for _, link := range links(p) {
			leads(p, link, others, report)
		}
	}
	overlaps(d, report)
	return found
}

type reporter func(panel, format string, args ...any)

func variables(d Dashboard, report reporter) {
	if !d.has("datasource") {
		report("", "it has no variable for the data source")
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" && v.Datasource.UID != "${datasource}" {
			report("", "the variable %s is asked of %q", v.Name, v.Datasource.UID)
		}
	}
	if d.has("function") && !d.has("namespace") {
		report("", "it has a variable for functions and none for namespaces")
	}
}

func words(p Panel, report reporter) {
	if p.Title == "" {
		report(fmt.Sprintf("panel %d", p.ID), "it has no title")
	}
	if !strings.HasSuffix(p.Description, ".") {
		report(p.Title, "its description is no sentence: %q", p.Description)
	}
	if p.FieldConfig.Defaults.Unit == "" || p.Type == "heatmap" && p.Options.YAxis.Unit == "" {
		report(p.Title, "it has no unit")
	}
	for _, unit := range p.units() {
		if unit == "ops" {
			report(p.Title, "its unit is operations: name what is counted, such as count:pulls/s")
		}
	}
}

// Alike returns the numbers that have one title on several dashboards and mean several
// things: readers compare them.
func Alike(all []Dashboard) []Finding {
	var found []Finding
	first := map[string]string{}
	for _, d := range all {
		for _, p := range d.Charts() {
			if p.Type != "stat" || len(p.Targets) == 0 {
				continue
			}
			expr, known := first[p.Title]
			if !known {
				first[p.Title] = p.Targets[0].Expr
			} else if expr != p.Targets[0].Expr {
				found = append(found, Finding{d.Title, p.Title, "another dashboard has another query under this title: " + expr})
			}
		}
	}
	return found
}

func sources(p Panel, report reporter) {
	if p.Datasource.UID != "${datasource}" {
		report(p.Title, "its data source is %q, not the variable", p.Datasource.UID)
	}
	if len(p.Targets) == 0 {
		report(p.Title, "it has no query")
	}
	refs := map[string]bool{}
	for _, t := range p.Targets {
		if t.Datasource.UID != "${datasource}" {
			report(p.Title, "the data source of query %s is %q, not the variable", t.RefID, t.Datasource.UID)
		}
		if refs[t.RefID] {
			report(p.Title, "two queries are called %q", t.RefID)
		}
		refs[t.RefID] = true
		if p.Type == "timeseries" && t.Legend == "" {
			report(p.Title, "query %s has no legend", t.RefID)
		}
	}
}

// links are those of a panel's title, of its fields and of its columns.
func links(p Panel) []Link {
	all := append(slices.Clone(p.Links), p.FieldConfig.Defaults.Links...)
	for _, o := range p.FieldConfig.Overrides {
		for _, property := range o.Properties {
			if property.ID == "links" {
				all = append(all, linksIn(property.Value)...)
			}
		}
	}
	return all
}

var board = regexp.MustCompile(`^/d/([\w-]+)\?`)

// leads wants a link to lead to a dashboard that is there, or to well-formed traces.
func leads(p Panel, link Link, others []string, report reporter) {
	if found := board.FindStringSubmatch(link.URL); found != nil {
		if !slices.Contains(others, found[1]) {
			report(p.Title, "the link %q leads to %s, which is no dashboard", link.Title, found[1])
		}
		return
	}
	address, err := url.Parse(strings.NewReplacer("${", "", "}", "").Replace(link.URL))
	if err != nil || address.Path != "/explore" {
		report(p.Title, "the link %q leads to %q", link.Title, link.URL)
		return
	}
	if panes := address.Query().Get("panes"); !strings.Contains(panes, `"queryType":"traceql"`) {
		report(p.Title, "the link %q asks for %q", link.Title, panes)
	}
}

func overlaps(d Dashboard, report reporter) {
	for i, p := range d.Panels {
		a := p.Position
		if a.X < 0 || a.W <= 0 || a.H <= 0 || a.X+a.W > columns {
			report(p.Title, "it does not fit on the grid: %+v", a)
		}
		for _, other := range d.Panels[:i] {
			b := other.Position
			if a.X < b.X+b.W && b.X < a.X+a.W && a.Y < b.Y+b.H && b.Y < a.Y+a.H {
				report(p.Title, "it lies on %q", other.Title)
			}
		}
	}
}
