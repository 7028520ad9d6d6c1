package httpadapter

import (
	"net"
	"syscall"
)

// idleDead says whether an idle connection was closed by the other side, or
// holds bytes that nobody asked for. It takes nothing from the connection and
// does not wait, also while another goroutine reads.
func idleDead(c net.Conn) bool {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	alive := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		alive = err == syscall.EAGAIN || err == syscall.EINTR
	})
	return err != nil || !alive
}
