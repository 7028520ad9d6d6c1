// Package cli implements the windlass command, and the kubectl plugin with the same verbs:
// it reads flags and manifests, talks to a Windlass, and prints results for people and
// scripts. Its caller passes the programs that can run in this process as Programs.
//
// It decides which Windlass a verb acts on: that of a data folder, over its
// control socket (internal/localapi), or that of a kubeconfig's context, over the API
// server of its cluster (internal/kubeclient). The verbs know only a target. It
// reads the kubeconfig only if it needs it. The commands that it suggests act on the
// same Windlass.
//
// It decides the exit code, which is part of its interface:
//
//	0  done
//	1  the function ran and its answer is an error
//	2  the command was used wrongly: flags, arguments, a manifest
//	3  Windlass does not answer, refused, or failed; a called function did not run
//	4  the function may have run, and its answer is unknown
//	5  the wait timed out
//
// Each subject is a type in its own file, such as deployer or invoker. All stand on
// a finder, which finds the Windlass and knows how this user names it, and that on a
// host: streams, clock and environment.
//
// Results go to the standard output, everything said about them to the standard
// error. Every error says what to do next. Colours appear on a terminal only,
// and not if NO_COLOR is set.
package cli
