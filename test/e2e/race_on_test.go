//go:build race

package e2e

// buildFlags let the agent run with the race detector when the specs do.
var buildFlags = []string{"-race"}
