// Package experiments is what windlass sim runs: each experiment is data, and a
// function from a size, a seed and recorded traces to a report. What is simulated, it
// leaves to internal/sim/cluster.
//
// It decides what is compared with what, and which goals a result has. It promises
// that the same arguments give the same report. A goal is about counts and ratios
// of virtual time, never about how long this machine took; what is measured of the
// machine (the experiment scale) is the one exception, and is measured with the
// clock that the caller hands over.
package experiments
