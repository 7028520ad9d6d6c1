// Package plots draws the charts of reports (internal/sim/report) as SVG and PNG. The same chart
// gives the same bytes.
//
// It is separate from package report because its drawing library brings fonts and rasterisers,
// which no program that serves calls should contain: only cmd/windlass-plot links it.
package plots
