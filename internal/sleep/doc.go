// Package sleep waits for a duration, or until a condition holds, unless a context ends first.
package sleep
