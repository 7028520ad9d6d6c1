package live

import (
	"cmp"
	"slices"
	"strings"
)

// Order is what functions are sorted by.
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

// Sort sorts functions, those that are equal by name. Reverse turns the order around.
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
	// Text must be in NAMESPACE/NAME, in whatever case.
	Text string
}

// Choose are the functions that a Choice leaves, in the same order.
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
