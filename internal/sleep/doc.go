// Package sleep waits for a duration, or until a condition holds, unless a context ends first. It says
// how long to wait for a pace.
package sleep
