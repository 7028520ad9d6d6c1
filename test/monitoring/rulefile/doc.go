// Package rulefile reads files with rules of Prometheus, and writes files with shorter times, so
// that a test need not wait for minutes.
//
// It shortens for, interval, offsets and the windows in brackets, in expressions and in the queries
// of annotations alike; thresholds and everything else stay.
package rulefile
