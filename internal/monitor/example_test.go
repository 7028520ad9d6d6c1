package monitor_test

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/monitor"
)

// Rates are those between two samples. What a process had counted before it was first seen is
// no news.
func Example() {
	registry := prometheus.NewRegistry()
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "windlass_gateway_invocations_total"},
		[]string{"function_namespace", "function", "revision", "code", "executed"})
	registry.MustRegister(calls)
	answered := calls.WithLabelValues("shop", "cart", "00001", "200", "yes")
	now := time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

	var watcher monitor.Watcher
	for _, n := range []float64{100_000, 50, 50} {
		answered.Add(n)
		families, err := registry.Gather()
		if err != nil {
			panic(err)
		}
		view := watcher.See(monitor.Read(now, []monitor.Reading{{Source: "gateway-0", Families: families}}))
		for _, f := range view.Functions {
			fmt.Printf("%s/%s %.0f calls a second\n", f.Namespace, f.Name, f.Rate)
		}
		now = now.Add(time.Second)
	}
	// Output:
	// shop/cart 0 calls a second
	// shop/cart 50 calls a second
	// shop/cart 50 calls a second
}
