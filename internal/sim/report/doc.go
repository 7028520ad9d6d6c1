// Package report holds the result of an experiment in virtual time as a value, and writes it as
// text for people, as CSV and as JSON.
//
// The same report gives the same bytes. The package draws nothing: a chart has only the numbers
// and the axes of a picture, so that a program which runs experiments need not link the drawing
// library (internal/sim/plots).
package report
