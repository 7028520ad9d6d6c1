// Package plots draws the charts of reports (internal/sim/report) as SVG and PNG.
//
// It is apart from what makes the reports because the library that draws brings
// fonts and rasterisers along, which no program that serves calls should carry:
// only cmd/windlass-plot links it. The same chart gives the same bytes.
package plots
