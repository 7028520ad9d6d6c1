// Package proctime says what a process has used so far: CPU time, by the kernel's clock of the
// process, in nanoseconds, which counts threads that have ended, too; how long its threads waited for
// a core; and context switches. Only Linux tells; elsewhere all of them fail.
package proctime
