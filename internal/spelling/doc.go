// Package spelling compares what somebody wrote with what they may have meant.
package spelling
