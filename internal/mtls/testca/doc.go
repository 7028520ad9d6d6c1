// Package testca makes certificates for tests: a CA, and for each role the
// folder that wiretls reads. It keeps nothing outside of the test's own folders.
package testca
