// Package tenant gives programs that measure a cluster a namespace of their own in it, functions to
// create and delete, and access to the gateways.
//
// Nothing is left in the cluster once Remove has returned nil.
package tenant
