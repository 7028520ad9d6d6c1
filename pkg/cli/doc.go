// Package cli is the windlass command: it reads flags and manifests, talks to a
// running Windlass over its control socket and gateway, and prints what people
// and scripts read. What runs in this process, it is handed as Programs.
//
// It decides the exit code, which is part of its interface:
//
//	0  done
//	1  the function ran and its answer is an error
//	2  the command was used wrongly: flags, arguments, a manifest
//	3  Windlass is not there, refused, or failed
//
// Results go to the standard output, everything said about them to the standard
// error. Every error says what to do next. Colours appear on a terminal only,
// and not if NO_COLOR is set.
package cli
