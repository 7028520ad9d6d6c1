// Package sleep waits in a way that a context ends.
package sleep
