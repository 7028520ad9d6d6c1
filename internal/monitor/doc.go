// Package monitor computes the present state of a Windlass for people who watch it: windlass top
// and the status page show the same View.
//
// A Sample holds the metrics and the last decisions of the processes at one moment. A Watcher
// gets one Sample after the other and makes a View of each: present states, and rates, errors and
// quantiles over the last ten seconds.
//
// Invariants:
//
//   - Counts from before the first Sample of a process do not appear as new, and a restarted
//     process counts from 0.
//   - Memory is bounded by the present objects plus a minute of called functions.
//   - Names and other texts from outside have no control characters in a View, so that they
//     cannot take over a terminal.
//
// The package decides nothing and reads no clock: the time is that of the samples.
package monitor
