//go:build !linux

package podagent

import "time"

// usage is known on Linux only.
func usage() (cpu time.Duration, resident uint64) { return 0, 0 }

// ownGroup is known on Linux only.
func ownGroup(string) uint64 { return 0 }
