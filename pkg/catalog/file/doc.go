// Package file keeps Functions in a folder, one file for each:
// <folder>/<namespace>/<name>.yaml. It is what stands in for the cluster's API
// in local mode.
//
// A Store decides what the API server would: whether an applied Function is
// new, changed or the same, its UID and its generation. It keeps what people
// write, and no status. What Apply has returned from is on the disk whole, and
// a crash at any moment leaves each file as it was before or as it is after.
//
// The folder belongs to one Store at a time, and people change it through the
// Store only.
package file
