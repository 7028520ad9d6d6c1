package buildinfo

import "runtime/debug"

// Version is never empty. The Makefile sets it to what git describe says; a
// program built without it has the version of its module, which is "(devel)"
// in a checkout.
var Version string

func init() {
	if Version != "" {
		return
	}
	Version = "unknown"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		Version = info.Main.Version
	}
}
