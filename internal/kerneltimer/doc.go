// Package kerneltimer has timers of the kernel, for which the runtime's poller waits as for a connection.
//
// A process that does little but wake up now and then makes half as many context switches with them as with Go's.
// When one of Go's timers is due, the runtime also wakes its monitor thread, which then looks a few times whether there is
// work. Ordinary system calls of a process that was idle wake that thread, too. Those of this package do not.
package kerneltimer
