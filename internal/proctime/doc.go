// Package proctime says what a process has used so far: CPU time, by the kernel's clock of the
// process, in nanoseconds, which counts threads that have ended, too; and context switches. Only
// Linux tells; elsewhere both fail.
package proctime
