// Package workload decides which function is called when and for how long: it makes a Trace, from
// recorded data (LoadAzure) or from a published distribution (Synthetic), and fits it to a machine
// (Shape).
//
// Everything here is a function of its arguments. Randomness comes only from a seed, so that the
// same seed makes the same trace on every machine; nothing reads a clock or starts anything. A
// trace's Notes list everything that a step changed or left out, so that they accompany every
// result.
package workload
