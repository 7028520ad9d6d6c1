// Package rulefile reads files with rules of Prometheus, and makes of them files
// whose times are shorter, so that a test need not wait for minutes.
//
// What is shortened are for, interval and the windows in brackets, of expressions
// and of the queries in annotations alike; thresholds and everything else stay.
package rulefile
