// Package scrape asks one process for its metrics, as Prometheus would: in the format
// that has native histograms.
//
// It asks once, and takes at most so much of an answer; who is asked, how often and
// what becomes of the answer is for others to say.
package scrape
