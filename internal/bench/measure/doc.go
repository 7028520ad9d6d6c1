// Package measure carries out a plan of package bench: it starts the programs, makes the calls,
// and reads what the programs used.
//
// Everything runs on this machine, at 127.0.0.1. The function, the proxies and the load are the
// program benchpeer (package peers), a separate gateway and scheduler are subcommands of windlass
// (package workers), and a local Windlass is windlass up, of which nothing is known but its
// addresses, its metrics and its child processes.
//
// CPU time is the kernel's clock of each process, in nanoseconds, as in /proc/PID/schedstat; the
// clock counts threads that have ended, too. The load is a process of its own, whose time counts
// nowhere. Context switches are those of /proc/PID/task/*/status. Allocations come from the
// programs' metrics, in the first round that counts.
//
// Run returns when all that it started has ended, also if its context ends. Should the bench itself
// be killed, its programs end with it.
package measure
