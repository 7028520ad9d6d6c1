//go:build linux && (amd64 || arm64)

package cgroups

import (
	"errors"
	"io"
	"io/fs"
	"syscall"
	"unsafe"
)

// Readable is a file of the kernel that is read again and again, by one goroutine at a time. A read by package os says
// to Go's scheduler that it may take long. In a process that sleeps between its reads that wakes the runtime's monitor
// thread, which costs two context switches and more than the read. These files are the kernel's memory, so nothing waits.
type Readable struct {
	name string
	fd   int
}

// OpenReadable opens such a file.
func OpenReadable(name string) (*Readable, error) {
	for {
		fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err == nil {
			return &Readable{name, fd}, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

// ReadAt implements io.ReaderAt.
func (r *Readable) ReadAt(p []byte, offset int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, _, errno := syscall.RawSyscall6(syscall.SYS_PREAD64, uintptr(r.fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), uintptr(offset), 0, 0)
		switch {
		case errno == syscall.EINTR:
			continue
		case errno != 0:
			return 0, &fs.PathError{Op: "read", Path: r.name, Err: errno}
		case int(n) < len(p):
			return int(n), io.EOF
		}
		return int(n), nil
	}
}

// WriteAt fails: it is for reading.
func (r *Readable) WriteAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: r.name, Err: syscall.EBADF}
}

// Close closes the file, once.
func (r *Readable) Close() error {
	fd := r.fd
	r.fd = -1
	if err := syscall.Close(fd); err != nil {
		return &fs.PathError{Op: "close", Path: r.name, Err: err}
	}
	return nil
}
