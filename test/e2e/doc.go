// Package e2e tests Windlass as a whole: real processes, real sockets, real
// functions. Its specs state what a user may rely on.
package e2e
