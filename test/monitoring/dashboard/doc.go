// Package dashboard finds the queries of Grafana's dashboards, as Grafana would
// send them to Prometheus: with their variables replaced.
package dashboard
