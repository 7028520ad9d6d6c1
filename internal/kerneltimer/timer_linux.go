package kerneltimer

import (
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Timer calls a function whenever it is due. All its methods are for any goroutine.
type Timer struct {
	file  *os.File
	raw   syscall.RawConn // of file
	ended chan struct{}   // closed once nothing calls the function any more
}

// New returns a timer that is not set. It calls due in a goroutine of its own, and skips what would have been due
// meanwhile. It fails where the kernel has no such timers, or the process may open no more files.
func New(due func()) (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "a timer")
	raw, err := file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails where the poller cannot wait for it
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	t := &Timer{file: file, raw: raw, ended: make(chan struct{})}
	go t.callWhenDue(due)
	return t, nil
}

// callWhenDue calls due until Stop.
func (t *Timer) callWhenDue(due func()) {
	defer close(t.ended)
	var count [8]byte // how often it was due
	read := func(fd uintptr) (failed bool) {
		_, _, errno := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&count)), unsafe.Sizeof(count))
		if errno == 0 {
			due()
		}
		// It is called again once there is something to read. A new Read would begin with a read for nothing.
		return errno != 0 && errno != syscall.EAGAIN
	}
	_ = t.raw.Read(read)
}

// Reset lets it be due once, after that time, and not when it was to be before, unless it was stopped.
func (t *Timer) Reset(after time.Duration) {
	// A time of zero would switch it off.
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(1, after.Nanoseconds()))}
	_ = t.raw.Control(func(fd uintptr) {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	})
}

// Stop ends it, and returns when it has called its function for the last time.
func (t *Timer) Stop() {
	_ = t.file.Close()
	<-t.ended
}
