// Package monitor says what a Windlass does at the moment, for people who look at it
// while it works: windlass top and the status page show the same View.
//
// A Sample is what the processes told at one moment: their metrics, and their last
// decisions. A Watcher is given one Sample after the other and makes of each a View:
// states as they are now, and rates, errors and quantiles over the last ten seconds.
// What a process counted before it was first seen is not mistaken for news, and a
// process that starts again counts from 0.
//
// It decides nothing and holds no clock: the time is that of the samples. It needs
// memory for what is there and for a minute of what was called.
// Texts of others, such as names of nodes, have no control characters in a View, so
// that they cannot take over a terminal.
package monitor
