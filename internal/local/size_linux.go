package local

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sizeOf returns the size of a file in bytes; 0 if there is none.
//
// Every call comes by here. The system call is a raw one for the reason that package rawtcp
// gives: the kernel answers it from memory, because it is asked not to look elsewhere.
func sizeOf(path string) int64 {
	name, err := syscall.BytePtrFromString(path)
	if err != nil {
		return 0
	}
	var stat unix.Statx_t
	dir := unix.AT_FDCWD
	_, _, errno := syscall.RawSyscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)),
		unix.AT_STATX_DONT_SYNC, unix.STATX_SIZE, uintptr(unsafe.Pointer(&stat)), 0)
	if errno != 0 {
		return 0
	}
	return int64(stat.Size)
}
