// Package lint checks the Grafana dashboards of the chart: that each panel says what it
// shows and in which unit, that each query is one that Prometheus understands, and that
// queries name metrics and labels that Windlass has, and treat them as what they are.
//
// Its rules are those of Grafana's own dashboard linter where they fit, and some more:
// every scheduler tells of every function, so states are summed over schedulers; a panel
// whose unit contradicts its metric's name is wrong; panels do not overlap.
//
// The metrics are read from docs/metrics.md, which is made from the code, and the
// recording rules from the chart. Rules are pure functions of a dashboard and of that
// catalogue, and return findings; only the tests read files.
package lint
