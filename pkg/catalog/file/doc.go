// Package file keeps Functions in a folder, one file for each:
// <folder>/<namespace>/<name>.yaml. It is what stands in for the cluster's API, and for
// its controller, in local mode.
//
// A Store decides what the API server would: whether an applied Function is
// new, changed or the same, its UID and its generation. It keeps what people
// write; the revisions of it, as further documents of the function's file; and of the
// status what rollout.Decide says. What Decide wants is done in the same write as what
// gave rise to it. What a call has returned from is on the disk whole, and
// a crash at any moment leaves each file as it was before or as it is after.
//
// The folder belongs to one Store at a time, and people change it through the
// Store only.
package file
