//go:build !linux

package attacks

import "io"

// There are no user namespaces elsewhere.
var hogAttacks []attack

func playHog(io.Reader) {}
