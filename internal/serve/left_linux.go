package serve

import (
	"net"

	"golang.org/x/sys/unix"
)

// hungUp tells whether the other side has ended the connection, or its half of it,
// whatever of what it sent before is still unread.
func hungUp(c *net.TCPConn) bool {
	raw, err := c.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(poll, 0)
		ended = err == nil && n > 0
	})
	return err != nil || ended
}
