// Package cli is the windlass command, and the kubectl plugin of the same verbs:
// it reads flags and manifests, talks to a Windlass, and prints what people and
// scripts read. What runs in this process, it is handed as Programs.
//
// It decides which Windlass a verb is about: that of a data folder, over its
// control socket (internal/localapi), or that of a kubeconfig's context, over the API
// server of its cluster (internal/kubeclient). The verbs know only a target. The
// kubeconfig is not read unless it is needed. The commands that it tells people
// to type next are about the same Windlass.
//
// It decides the exit code, which is part of its interface:
//
//	0  done
//	1  the function ran and its answer is an error
//	2  the command was used wrongly: flags, arguments, a manifest
//	3  Windlass is not there, refused, or failed; a function that was called did not run
//	4  the function may have run, and its answer is not known
//	5  what was waited for had not come in time
//
// Each subject is a type in its own file, such as deployer or invoker. All stand on
// a finder, which finds the Windlass and knows how this user names it, and that on a
// host: streams, clock and environment.
//
// Results go to the standard output, everything said about them to the standard
// error. Every error says what to do next. Colours appear on a terminal only,
// and not if NO_COLOR is set.
package cli
