package main

import (
	"os"

	"github.com/windlass-dev/windlass/internal/local"
)

// variant is a Windlass that is measured.
type variant struct {
	name string
	// goal is the largest ratio to the first one that is wanted; 0 for none.
	goal   float64
	change func(*local.Config)
}

// variants begin with the one to which the others are compared.
var variants = []variant{
	{"off", 0, func(c *local.Config) { c.NoMetrics = true }},
	{"metrics", 1.05, func(*local.Config) {}},
	{"sampled-0", 0, sampled(0)},
	{"sampled-1-percent", 1.15, sampled(0.01)},
	{"sampled-100-percent", 0, sampled(1)},
}

// sampled counts, and records a share of the calls.
func sampled(ratio float64) func(*local.Config) {
	return func(c *local.Config) { c.Tracing.Endpoint, c.Tracing.SampleRatio = os.Getenv(collectorVariable), ratio }
}

// collectorVariable says where traces go.
const collectorVariable = "WINDLASS_COST_COLLECTOR"
