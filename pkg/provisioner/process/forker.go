package process

import "runtime"

// forker runs functions on one operating system thread that lives as long as
// serve does. The parent-death signal of a child is bound to the thread that
// forked it, not to the process: a child of a pool thread would be killed as
// soon as that thread is retired. The thread costs no parallelism, because Go
// forks one process at a time anyway.
type forker chan func()

// forkLoop returns when the channel is closed, and its thread ends: not before
// the last child has.
func (f forker) forkLoop() {
	// Without an unlock the thread ends with the goroutine instead of returning to the pool,
	// so no other child can depend on it.
	runtime.LockOSThread()
	for fork := range f {
		fork()
	}
}

// do runs fork on the thread and returns when it has. It serves one request at a time; waiting
// ones block only their own goroutines.
func (f forker) do(fork func()) {
	done := make(chan struct{})
	f <- func() {
		defer close(done)
		fork()
	}
	<-done
}
