package lint

import (
	"encoding/json"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// linksIn reads the links of an override.
func linksIn(value json.RawMessage) []Link {
	var links []Link
	if json.Unmarshal(value, &links) != nil {
		return nil
	}
	return links
}

// shown are Grafana's units for what the names of metrics end in.
var shown = map[string]string{"seconds": "s", "bytes": "bytes", "ratio": "percentunit"}

// unit wants values to be shown in the unit of their metric, where the query leaves it
// as it is.
func (q *query) unit(expr parser.Expr) {
	want, known := unitOf(expr)
	if !known {
		return
	}
	if got := q.panel.unit(q.panel.field(q.target)); got != want {
		q.report("its values are shown as %q and are %q", got, want)
	}
}

// unitOf follows an expression down to a series while its unit stays the same.
func unitOf(expr parser.Expr) (string, bool) {
	switch expr := expr.(type) {
	case *parser.ParenExpr:
		return unitOf(expr.Expr)
	case *parser.AggregateExpr:
		if expr.Op == parser.COUNT {
			return "", false
		}
		return unitOf(expr.Expr)
	case *parser.BinaryExpr:
		return unitOfBinary(expr)
	case *parser.Call:
		return unitOfCall(expr)
	case *parser.VectorSelector:
		return unitOfName(expr.Name)
	}
	return "", false
}

func unitOfBinary(expr *parser.BinaryExpr) (string, bool) {
	if expr.Op == parser.LOR || expr.Op == parser.LAND || expr.Op.IsComparisonOperator() {
		return unitOf(expr.LHS)
	}
	left, leftKnown := unitOf(expr.LHS)
	right, rightKnown := unitOf(expr.RHS)
	switch {
	case expr.Op == parser.DIV && leftKnown && rightKnown && left == right:
		return "percentunit", true
	// Seconds spent by things that are counted: so long for each of them.
	case expr.Op == parser.DIV && leftKnown && left == "s" && !rightKnown:
		return "s", true
	}
	return "", false
}

func unitOfCall(expr *parser.Call) (string, bool) {
	switch expr.Func.Name {
	case "histogram_quantile":
		return bucketUnit(expr.Args[1])
	case "sort_desc", "round":
		return unitOf(expr.Args[0])
	case "increase":
		return seriesUnit(expr.Args[0])
	case "rate":
		return spentUnit(expr.Args[0])
	}
	return "", false
}

// bucketUnit is the unit of the histogram that is below, as a whole or by its buckets.
func bucketUnit(expr parser.Expr) (string, bool) {
	unit, known := "", false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			for part := range strings.SplitSeq(selector.Name, ":") {
				if of, is := unitOfName(strings.TrimSuffix(part, "_bucket")); is {
					unit, known = of, true
				}
			}
		}
		return nil
	})
	return unit, known
}

// seriesUnit is the unit of a counter's increase. Buckets count observations, whatever
// they hold.
func seriesUnit(expr parser.Expr) (string, bool) {
	matrix, ok := expr.(*parser.MatrixSelector)
	if !ok {
		return "", false
	}
	selector, ok := matrix.VectorSelector.(*parser.VectorSelector)
	if !ok {
		return "", false
	}
	return unitOfName(strings.TrimSuffix(selector.Name, "_sum"))
}

// spentUnit is that of seconds that are spent in a second: mean times are quotients of
// two such rates. Processor time in a second is a number of cores.
func spentUnit(expr parser.Expr) (string, bool) {
	matrix, ok := expr.(*parser.MatrixSelector)
	if !ok {
		return "", false
	}
	selector, ok := matrix.VectorSelector.(*parser.VectorSelector)
	if !ok || strings.Contains(selector.Name, "_cpu_") {
		return "", false
	}
	return unitOfName(strings.TrimSuffix(selector.Name, "_sum"))
}

// unitOfName reads a name's end. Of a recording rule, the metric in its middle counts.
func unitOfName(name string) (string, bool) {
	if parts := strings.Split(name, ":"); len(parts) == 3 {
		name = parts[1]
	}
	name = strings.TrimSuffix(name, "_total")
	for end, unit := range shown {
		if strings.HasSuffix(name, "_"+end) {
			return unit, true
		}
	}
	return "", false
}
