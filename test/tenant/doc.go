// Package tenant gives programs that measure a cluster a namespace of their own in
// it, with functions that they make and remove, and the way to the gateways.
//
// It promises that nothing is left in the cluster once Remove has returned nil.
package tenant
