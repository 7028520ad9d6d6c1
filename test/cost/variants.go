package main

import "github.com/windlass-dev/windlass/pkg/local"

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
}
