// Package experiments defines the experiments of windlass sim: each is data, and a function from a
// size, a seed and recorded traces to a report. internal/sim/cluster runs the simulations.
//
// It decides what to compare, and which goals a result has.
//
// Invariants:
//
//   - The same arguments give the same report.
//   - Goals concern counts and ratios of virtual time, never the time of this machine. The
//     experiment scale is the one exception: it measures the machine with the clock that the
//     caller passes.
package experiments
