// Package process is the provisioner's runtime for local mode: it runs
// instances as operating system processes, without a container and without
// root.
//
// # What an instance is
//
// An instance is two child processes, the function and its agent, which are
// started together and share one process group. If the agent ends, the
// function is asked to end (SIGTERM). If the function ends, the agent hears how through
// a pipe, so that it fails the calls that the function ran and goes. The whole group,
// grandchildren included, is killed when both have ended or Config.StopGrace is over. Stop asks the agent
// first, so that a running call can finish while its function still lives; the
// function is asked once the agent has left. Each Start is answered by one
// Exit, after both processes have been reaped.
//
// Where the function asks the agent for calls (the Lambda Runtime API), the agent
// inherits an open listener: a function that is faster than its agent waits instead
// of finding nobody.
//
// On Linux a child dies with Windlass even if that is killed with SIGKILL. What
// the children themselves have started is out of reach in that one case.
//
// # What an instance sees
//
// The function runs its own command or what the Launcher says, in the folder of
// its code. A program without a slash is looked up on the PATH of Windlass. Its
// environment is put together by functionEnv; nothing of the environment of
// Windlass reaches it but a short list of harmless names. It has a folder of
// its own below DataDir/instances that is removed at its end, and logs below
// DataDir/logs (see package instancelog), of which those of the last 20 ended
// instances of each function are kept.
//
// # Limits
//
// A memory limit stops a function that runs away; it is not exact, and it
// holds for each process by itself (see the comment on dataHeadroom). A CPU
// limit is rounded up to whole cores. Both need Linux; elsewhere a warning
// says once that they are not enforced.
package process
