package nodeagent

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernelTicker is a timer of the kernel, for which the runtime's poller waits as for a connection.
type kernelTicker struct {
	file  *os.File
	fd    int
	ticks chan time.Time
	ended chan struct{} // closed once nothing passes ticks on
}

// NewKernelTicker returns a ticker that wakes one thread. One of Go's also wakes the runtime's monitor thread, which
// sleeps until the next timer is due and then looks a few times whether there is work: more than half of the context switches of a
// program that wakes up every 5 ms and does little. Where the kernel has no such timer, it is Go's.
func NewKernelTicker() Ticker {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return newGoTicker()
	}
	file := os.NewFile(uintptr(fd), "a timer")
	raw, err := file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails where the poller cannot wait for it
	}
	if err != nil {
		_ = file.Close()
		return newGoTicker()
	}
	t := &kernelTicker{file: file, fd: fd, ticks: make(chan time.Time, 1), ended: make(chan struct{})}
	go t.passOn(raw)
	return t
}

// passOn passes ticks on until Stop.
func (t *kernelTicker) passOn(raw syscall.RawConn) {
	defer close(t.ended)
	var count [8]byte // how often it was due
	read := func(fd uintptr) (done bool) {
		// An ordinary system call would wake the monitor thread, too.
		_, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&count)), unsafe.Sizeof(count))
		return errno != syscall.EAGAIN
	}
	for raw.Read(read) == nil {
		select {
		case t.ticks <- time.Now():
		default:
		}
	}
}

// Ticks implements Ticker.
func (t *kernelTicker) Ticks() <-chan time.Time { return t.ticks }

// Reset implements Ticker.
func (t *kernelTicker) Reset(every time.Duration) {
	at := unix.NsecToTimespec(every.Nanoseconds())
	_ = unix.TimerfdSettime(t.fd, 0, &unix.ItimerSpec{Interval: at, Value: at}, nil) // fails for what is no timer
}

// Stop implements Ticker.
func (t *kernelTicker) Stop() {
	_ = t.file.Close()
	<-t.ended
}
