// Package report is what an experiment in virtual time found, as a value, and how
// that value is written: as text for people, as CSV and as JSON.
//
// It promises that the same report gives the same bytes. It draws nothing:
// charts are only the numbers of a picture and what its axes say, so that who
// runs an experiment need not link what draws (internal/sim/plots).
package report
