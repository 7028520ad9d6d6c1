// Package testca makes certificates for tests: a CA, and for each role the folder that package
// mtls reads. It writes only to the test's own folders.
package testca
