// Package file stores Functions in a folder, one file for each:
// <folder>/<namespace>/<name>.yaml. In local mode it replaces the cluster's API server and the
// controller.
//
// Invariants:
//
//   - A change is on the disk, whole, when the call that makes it returns.
//   - A crash at any moment leaves each file as it was before or as it is after the change.
//
// A Store decides what the API server would: whether an applied Function is new, changed or
// unchanged, its UID and its generation. It keeps the author's spec, the revisions as further
// documents of the function's file, and the part of the status that rollout.Decide computes. It
// carries out Decide's plan in the same write as the change that caused it.
//
// The folder belongs to one Store at a time, and people change it only through the Store.
package file
