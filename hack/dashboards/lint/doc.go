// Package lint checks the Grafana dashboards of the chart: each panel says what it shows and in
// which unit, each query is valid for Prometheus, and queries name existing metrics and labels of
// Windlass and use them by their types.
//
// Its rules are those of Grafana's own dashboard linter where they fit, and some more: every
// scheduler reports every function, so states are summed over schedulers; a panel's unit must not
// contradict its metric's name; panels must not overlap.
//
// The metrics are read from docs/metrics.md, which is made from the code, and the recording rules
// from the chart. Rules are pure functions of a dashboard and of that catalogue, and return
// findings; only the tests read files.
package lint
