package gateway

import "github.com/windlass-dev/windlass/pkg/catalog"

// namespaces are those that have functions, and which. What is remembered of a
// namespace goes with its last function. It is of one goroutine.
type namespaces map[string]map[string]bool

// changed takes note of a change. Of a function that is gone it tells whether that was
// the last one of its namespace.
func (n namespaces) changed(e catalog.Event) (last bool) {
	of := n[e.Key.Namespace]
	if e.Function != nil {
		if of == nil {
			of = make(map[string]bool)
			n[e.Key.Namespace] = of
		}
		of[e.Key.Name] = true
		return false
	}
	delete(of, e.Key.Name)
	if len(of) > 0 {
		return false
	}
	delete(n, e.Key.Namespace)
	return true
}

// functionChanged forgets what is remembered of functions and namespaces that are
// gone.
func (g *Gateway) functionChanged(e catalog.Event) {
	last := g.namespaces.changed(e)
	if e.Function == nil {
		g.metrics.forget(e.Key, last)
	}
	if last {
		g.door.forget(e.Key.Namespace)
	}
}
