// Package scrape reads the metrics of one process, as Prometheus would, in the format that has
// native histograms.
//
// It makes one request and accepts an answer of bounded size. The caller decides which processes
// to read, how often, and what to do with the answer.
package scrape
