// Package catalog says which functions exist, which of their revisions have calls or instances,
// and where calls go.
//
// All other packages read it as a Reader, whatever the source of Functions. Catalog is a Reader
// over memory, which a source fills: package file from a folder, package kube from a cluster.
// The source sets defaults and validates; the Catalog checks nothing again. The source replaces
// an entry as a whole. A unit may be another value than before and equal to it: then it has not
// changed.
//
// Most functions are idle, so the Catalog holds entries packed (Packed), in some hundred bytes each. Get,
// List and Watch open them. All who use an entry at the same time share it; a reader that uses one
// again and again keeps it.
//
// Invariants for watchers:
//
//   - A watcher sees the latest state, not every change. It holds only the set of names that
//     it has yet to look at, so the memory of a slow watcher grows with the number of
//     functions, not of changes.
//   - The identity of a function is never skipped: a watcher that knows one UID under a name
//     learns of its removal before it learns of another UID.
package catalog
