// Package workload decides which function is called when and for how long: it
// makes a Trace, from recorded data (LoadAzure) or from a published
// distribution (Synthetic), and fits it to a machine (Shape).
//
// Everything here is a function of its arguments. Randomness comes from a seed
// only, so that the same seed makes the same trace on every machine; nothing
// reads a clock or starts anything. Whatever a step changes or leaves out it
// says in the trace's Notes, so that a result can never be read without them.
package workload
