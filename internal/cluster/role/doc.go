// Package role has what all programs of a cluster have in common: their flags, which may also be environment
// variables; their log, which nobody who calls waits for; their metrics; and the port for health checks. It decides
// nothing, and links no client of a cluster or of a store, because the node agent links it and is small.
package role
