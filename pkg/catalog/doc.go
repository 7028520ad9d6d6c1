// Package catalog tells the other parts which functions exist, which revisions
// of them have calls or instances, and where calls go.
//
// Reader is what they see, wherever Functions come from. Catalog is a Reader
// over memory, which a source of Functions fills: package file does so from a
// folder, and package kube from a cluster. What goes into a Catalog must have its
// defaults and be valid; nothing is checked again here. An entry is replaced as a
// whole; who puts one in keeps the units that have not changed, so that watchers
// can tell.
//
// A watcher is told states, not histories: it holds no more than the set of the
// names that it has yet to look at, so however slow it is, it costs memory in
// proportion to the functions that exist or that it knows, and it sees the
// latest state when it comes to it. Only the identity of a function is never
// skipped over: a watcher that knows one UID under a name hears that this one
// is gone before it hears of another.
package catalog
