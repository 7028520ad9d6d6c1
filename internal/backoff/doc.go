// Package backoff decides how long to pause before a failed operation is tried again.
package backoff
