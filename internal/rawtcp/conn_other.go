//go:build !linux

package rawtcp

import (
	"net"
	"syscall"
)

// Wrap returns c.
func Wrap(c net.Conn) net.Conn { return c }

// IsQuiet reports whether a connection has nothing to read: the other side has neither sent
// bytes nor closed it. It does not wait, and is true where that cannot be known. Nobody else may
// read meanwhile.
func IsQuiet(c net.Conn) bool {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		quiet = err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err == nil && quiet
}
