// Package backoff says how long to pause before something that failed is tried again.
package backoff
