package callwire

import (
	"net"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged bounds how long data may stay unacknowledged. Linux then ends an idle
// connection after the same time, whatever the count of keepalives.
func limitUnacknowledged(c *net.TCPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledgedFor.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return set
}
