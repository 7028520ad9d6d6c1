// Package process is the provisioner's driver for local mode: it runs instances as operating
// system processes, without containers and without root.
//
// # Instances
//
// An instance is two child processes, the function and its agent, which start together and
// share one process group. If the agent ends, the driver asks the function to end (SIGTERM). If
// the function ends, the agent learns how through a pipe, fails the calls that the function ran,
// and ends. The driver kills the whole group, grandchildren included, once both have ended or
// Config.StopGrace is over. Stop asks the agent first, so that a running call can finish while
// its function still lives, and asks the function once the agent has left. Each Start has one
// Exit, after both processes have been reaped.
//
// Where the function asks the agent for calls (the Lambda Runtime API), the agent inherits an
// open listener, so that a function that starts faster than its agent waits instead of failing.
//
// On Linux the children die with Windlass even if SIGKILL ends it. The children's own child
// processes survive in that one case.
//
// # Environment
//
// The function runs its own command or the Launcher's, in the folder of its code. A program
// without a slash is looked up on the PATH of Windlass. functionEnv puts the environment
// together; of the environment of Windlass it passes on only a short list of harmless names.
// Each instance has its own folder below DataDir/instances, which is removed at its end. Logs
// are below DataDir/logs (see package instancelog), where the last 20 ended instances of each
// function keep theirs.
//
// # Limits
//
// A memory limit stops a function that runs away. It is not exact, and it applies to each
// process separately (see dataHeadroom). A CPU limit is rounded up to whole cores. The function has
// both from its start, but the memory limit just after it where the kernel lets Windlass trace no
// child. Both need Linux; elsewhere the driver logs one warning that it does not enforce them.
package process
