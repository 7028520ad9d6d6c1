package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Queries returns what is wrong with a dashboard's queries.
func Queries(d Dashboard, catalogue Catalogue) []Finding {
	var found []Finding
	for _, p := range d.Charts() {
		for _, t := range p.Targets {
			q := query{board: d, panel: p, target: t, catalogue: catalogue}
			q.check()
			for _, text := range q.faults {
				found = append(found, Finding{d.Title, p.Title, "query " + t.RefID + ": " + text})
			}
		}
	}
	return found
}

// query is one query under examination.
type query struct {
	board     Dashboard
	panel     Panel
	target    Target
	catalogue Catalogue
	faults    []string
}

func (q *query) report(format string, args ...any) {
	q.faults = append(q.faults, fmt.Sprintf(format, args...))
}

// overlapping is what $__rate_interval is filled with.
const overlapping = 5 * time.Minute

// filled stands for Grafana's variables, so that Prometheus can read the query.
var filled = strings.NewReplacer(
	"$__rate_interval", "5m", "$__range", "1h", "$__interval_ms", "60000", "$__interval", "1m",
	"$namespace", "NAMESPACE", "$function", "FUNCTION",
)

var windows = regexp.MustCompile(`\[([^\]]*)\]`)

// language is the one that a Prometheus understands without any feature switched on.
var language = parser.NewParser(parser.Options{})

func (q *query) check() {
	for _, window := range windows.FindAllStringSubmatch(q.target.Expr, -1) {
		if window[1] != "$__rate_interval" && window[1] != "$__range" {
			q.report("the window [%s] does not follow the panel's resolution", window[1])
		}
	}
	if strings.Contains(q.target.Expr, "$__interval_ms") && q.panel.Interval != apart {
		q.report("its points are %q apart, want %s", q.panel.Interval, apart)
	}
	expr, err := language.ParseExpr(filled.Replace(q.target.Expr))
	if err != nil {
		q.report("%v", err)
		return
	}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			q.selector(node, path)
		case *parser.AggregateExpr:
			q.grouping(node)
		case *parser.Call:
			q.call(node)
			q.whole(node, path)
			q.points(node, path)
		case *parser.SubqueryExpr:
			q.report("it has a subquery: use a recording rule")
		}
		return nil
	})
	q.legend(expr)
	q.unit(expr)
	if _, aggregated := keptLabels(expr); q.target.Format == "table" && !aggregated {
		q.report("its rows keep the metric's name, and are not merged with others: aggregate")
	}
}

// apart is how far apart points are at least that show what was added since the last one: as far as
// three scrapes, from which on Grafana's windows add each event to one point only.
const apart = "2m"

// points wants points to show what was added since the last one, and nothing twice.
func (q *query) points(node *parser.Call, path []parser.Node) {
	if node.Func.Name != "increase" || inRatio(path) {
		return
	}
	if matrix, ok := node.Args[0].(*parser.MatrixSelector); ok && matrix.Range == overlapping {
		q.report("windows overlap, and show an increase in several points: multiply its rate with $__interval_ms / 1000")
	}
}

// selector checks one series: that it exists, has the labels, is treated as what it is,
// and follows the variables.
func (q *query) selector(selector *parser.VectorSelector, path []parser.Node) {
	for _, name := range names(selector) {
		metric, known := q.catalogue.find(name)
		if !known {
			q.report("there is no metric %s", name)
			continue
		}
		for _, matcher := range selector.LabelMatchers {
			if !slices.Contains(metric.Labels, matcher.Name) && !slices.Contains(ofTarget, matcher.Name) {
				q.report("%s has no label %s", name, matcher.Name)
			}
		}
		q.treatment(metric, path)
		q.scope(metric, selector)
	}
}

// nameLabel is where Prometheus keeps the name of a metric.
const nameLabel = "__name__"

// names are the metrics that a selector takes, of which there may be several.
func names(selector *parser.VectorSelector) []string {
	if selector.Name != "" {
		return []string{selector.Name}
	}
	for _, matcher := range selector.LabelMatchers {
		if matcher.Name == nameLabel {
			return strings.Split(matcher.Value, "|")
		}
	}
	return nil
}

// treatment wants counters below rate or increase and gauges not, and states of functions
// aggregated: over gateways, each of which tells its part, and by their maximum over
// schedulers, of which two tell of a revision that changes hands. A maximum that is summed
// is that of each revision.
func (q *query) treatment(metric Metric, path []parser.Node) {
	var rated, aggregated, summed, merged bool
	for _, above := range path {
		switch above := above.(type) {
		case *parser.Call:
			rated = rated || slices.Contains([]string{"rate", "increase", "irate"}, above.Func.Name)
		case *parser.AggregateExpr:
			aggregated = true
			// The last one is the next above.
			merged = merged || above.Op == parser.SUM
			summed = above.Op != parser.MAX || merged && !slices.Contains(above.Grouping, "revision")
		}
	}
	switch {
	case metric.Kind == Histogram:
		q.report("%s has native buckets that not every Prometheus keeps: use its classic ones, its sum or count", metric.Name)
	case metric.Kind == Counter && !rated:
		q.report("%s is a counter: take its rate or increase", metric.Name)
	case metric.Kind == Native && !rated:
		q.report("%s is a native histogram: take its rate or increase", metric.Name)
	case metric.Kind == Gauge && rated:
		q.report("%s is a %s, which has no rate", metric.Name, metric.Kind)
	}
	if slices.Contains(metric.Labels, "function") && !strings.Contains(metric.Name, ":") && !aggregated {
		q.report("%s is told by every scheduler or gateway: aggregate it", metric.Name)
	}
	if metric.Kind == Gauge && summed && slices.Contains(metric.Labels, "revision") && toldBySchedulers(metric.Name) {
		q.report("%s may be told by two schedulers while a revision changes hands: take its max by function and revision first", metric.Name)
	}
}

// toldBySchedulers says that the scheduler that serves a function tells this of it.
func toldBySchedulers(name string) bool {
	return strings.HasPrefix(name, "windlass_scheduler_") || strings.HasPrefix(name, "windlass_agent_")
}

// scope wants a series with a namespace or a function to follow the variable of that name.
func (q *query) scope(metric Metric, selector *parser.VectorSelector) {
	if !strings.Contains(metric.Name, "windlass") {
		return
	}
	for label, variable := range map[string]string{"function_namespace": "namespace", "function": "function"} {
		if !q.board.has(variable) || !slices.Contains(metric.Labels, label) {
			continue
		}
		if !slices.ContainsFunc(selector.LabelMatchers, func(m *labels.Matcher) bool {
			return m.Name == label && strings.HasPrefix(m.Value, strings.ToUpper(variable))
		}) {
			q.report("%s does not follow the variable $%s", metric.Name, variable)
		}
	}
}

// grouping wants the labels that are kept to be labels of something below.
func (q *query) grouping(node *parser.AggregateExpr) {
	if node.Without {
		q.report("it aggregates without labels: name those that are kept")
	}
	there := q.labelsBelow(node.Expr)
	for _, label := range node.Grouping {
		if !slices.Contains(there, label) {
			q.report("%s is aggregated by %s, which nothing below has", node.Expr, label)
		}
	}
}

// labelsBelow are the labels that an expression may have.
func (q *query) labelsBelow(expr parser.Expr) []string {
	there := slices.Clone(ofTarget)
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			for _, name := range names(node) {
				metric, _ := q.catalogue.find(name)
				there = append(there, metric.Labels...)
			}
		case *parser.Call:
			if label, ok := replaced(node); ok {
				there = append(there, label)
			}
		}
		return nil
	})
	return there
}

func replaced(call *parser.Call) (string, bool) {
	if call.Func.Name != "label_replace" || len(call.Args) < 2 {
		return "", false
	}
	label, ok := call.Args[1].(*parser.StringLiteral)
	if !ok {
		return "", false
	}
	return label.Val, true
}

// call wants quantiles to be taken of sums: of native histograms, or of classic buckets that
// are told apart by their bounds.
func (q *query) call(node *parser.Call) {
	if node.Func.Name != "histogram_quantile" {
		return
	}
	sum, ok := node.Args[1].(*parser.AggregateExpr)
	if ok && sum.Op == parser.SUM && q.native(sum) {
		return
	}
	if !ok || sum.Op != parser.SUM || !slices.Contains(sum.Grouping, "le") {
		q.report("a quantile needs buckets that are summed by le")
	}
}

// native says that all that is below are native histograms.
func (q *query) native(expr parser.Expr) bool {
	is := true
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			metric, _ := q.catalogue.find(selector.Name)
			is = is && metric.Kind == Native
		}
		return nil
	})
	return is
}

// whole wants increases that are shown as counts to be rounded: nobody starts 3.6 instances.
// The cells of heatmaps are no counts.
func (q *query) whole(node *parser.Call, path []parser.Node) {
	if node.Func.Name != "increase" || q.panel.Type == "heatmap" || inRatio(path) || inCall(path, "round") {
		return
	}
	if _, measured := unitOf(node); !measured {
		q.report("%s counts things: round it to whole ones", node)
	}
}

// inRatio says that something is a part of a quotient or a quantile, which are no counts.
func inRatio(path []parser.Node) bool {
	return inCall(path, "histogram_quantile") || slices.ContainsFunc(path, func(above parser.Node) bool {
		binary, ok := above.(*parser.BinaryExpr)
		return ok && binary.Op == parser.DIV
	})
}

func inCall(path []parser.Node, function string) bool {
	return slices.ContainsFunc(path, func(above parser.Node) bool {
		call, ok := above.(*parser.Call)
		return ok && call.Func.Name == function
	})
}

var inLegend = regexp.MustCompile(`\{\{\s*(\w+)\s*\}\}`)

// legend wants a legend to name labels that the result has.
func (q *query) legend(expr parser.Expr) {
	there := q.labelsBelow(expr)
	if kept, ok := keptLabels(expr); ok {
		there = kept
	}
	for _, label := range inLegend.FindAllStringSubmatch(q.target.Legend, -1) {
		if !slices.Contains(there, label[1]) {
			q.report("its legend names %s, which the result has not", label[1])
		}
	}
}

// keptLabels are the labels of the first aggregation on the way down, if one decides.
func keptLabels(expr parser.Expr) ([]string, bool) {
	switch expr := expr.(type) {
	case *parser.ParenExpr:
		return keptLabels(expr.Expr)
	case *parser.BinaryExpr:
		return keptLabels(expr.LHS)
	case *parser.AggregateExpr:
		if slices.Contains([]parser.ItemType{parser.TOPK, parser.BOTTOMK}, expr.Op) {
			return keptLabels(expr.Expr)
		}
		return expr.Grouping, true
	case *parser.Call:
		switch expr.Func.Name {
		case "histogram_quantile":
			return keptLabels(expr.Args[1])
		case "sort_desc", "round":
			return keptLabels(expr.Args[0])
		}
	}
	return nil, false
}
