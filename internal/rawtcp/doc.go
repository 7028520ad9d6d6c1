// Package rawtcp makes TCP connections whose reads and writes cost less where processes sleep
// between them.
//
// A system call by package syscall says to Go's scheduler that it may take long. If the process
// was idle, that wakes the runtime's monitor thread, which costs two context switches: for a
// warm call, as much as all that an agent computes. Sockets never block in Go, so their reads and
// writes need not say so. A connection of this package reads and writes by raw system calls,
// and waits in the runtime's poller like any other. It tells the poller of a deadline only when
// something waits.
//
// Only Linux has it; elsewhere a connection stays as it is.
package rawtcp
