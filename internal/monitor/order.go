package monitor

import (
	"cmp"
	"slices"
	"strings"
)

// Order is the key by which functions are sorted.
type Order string

// The orders: the most first, but names from a to z.
const (
	ByQueue     Order = "queue"
	ByRate      Order = "rate"
	ByErrors    Order = "errors"
	ByP99       Order = "p99"
	ByInstances Order = "instances"
	ByName      Order = "name"
)

// Orders are all of them.
func Orders() []Order { return []Order{ByQueue, ByRate, ByErrors, ByP99, ByInstances, ByName} }

func byName(a, b Function) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// compare puts first what comes first in the order.
func (o Order) compare(a, b *Function) int {
	switch o {
	case ByQueue:
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(b.OldestWait, a.OldestWait), cmp.Compare(b.Rate, a.Rate))
	case ByRate:
		return cmp.Compare(b.Rate, a.Rate)
	case ByErrors:
		return cmp.Compare(b.Errors, a.Errors)
	case ByP99:
		return cmp.Compare(b.P99, a.P99)
	case ByInstances:
		return cmp.Compare(b.Instances.All(), a.Instances.All())
	}
	return 0
}

// Sort sorts functions, equal ones by name. reverse reverses the order.
func Sort(functions []Function, by Order, reverse bool) {
	slices.SortFunc(functions, func(a, b Function) int {
		order := cmp.Or(by.compare(&a, &b), byName(a, b))
		if reverse {
			return -order
		}
		return order
	})
}

// Choice says which functions are shown.
type Choice struct {
	// Namespace is the only one, or empty for all.
	Namespace string
	// Text must occur in NAMESPACE/NAME, in any case.
	Text string
}

// Sum are the Totals of functions. Quantiles of several are not known.
func Sum(functions []Function) Totals {
	t := Totals{Functions: len(functions), Load: Load{Recent: []float64{}}}
	for i := range functions {
		f := &functions[i]
		if f.Broken != "" {
			t.Broken++
		}
		if f.Called {
			t.Called++
		}
		t.Queued += f.Queued
		t.OldestWait = max(t.OldestWait, f.OldestWait)
		t.InFlight += f.InFlight
		t.Instances.add(f.Instances)
		t.Rate += f.Rate
		t.Errors += f.Errors
		t.Cold += f.Cold
		for len(t.Recent) < len(f.Recent) {
			t.Recent = append([]float64{0}, t.Recent...)
		}
		for i, rate := range f.Recent {
			t.Recent[len(t.Recent)-len(f.Recent)+i] += rate
		}
	}
	return t
}

// Of is the View of the functions that match a Choice, sorted, with the Totals of these.
func (v View) Of(c Choice, by Order) View {
	all := len(v.Functions)
	v.Functions = append([]Function{}, Choose(v.Functions, c)...)
	Sort(v.Functions, by, false)
	if len(v.Functions) < all {
		v.Totals = Sum(v.Functions)
	}
	return v
}

// Choose returns the functions that match a Choice, in the same order.
func Choose(functions []Function, c Choice) []Function {
	text := strings.ToLower(c.Text)
	var chosen []Function
	for _, f := range functions {
		if c.Namespace != "" && f.Namespace != c.Namespace {
			continue
		}
		if strings.Contains(strings.ToLower(f.Namespace+"/"+f.Name), text) {
			chosen = append(chosen, f)
		}
	}
	return chosen
}
