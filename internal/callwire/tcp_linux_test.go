package callwire

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

func TestTheKernelNoticesDeadPeers(t *testing.T) {
	a, _ := loopback(t)
	NoticeDeadPeer(a)
	raw, err := a.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	err = raw.Control(func(fd uintptr) {
		for name, option := range map[string][2]int{
			"keepalives": {unix.SOL_SOCKET, unix.SO_KEEPALIVE}, "first after seconds": {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
			"unanswered": {unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, "unacknowledged ms": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
		} {
			got[name], _ = unix.GetsockoptInt(int(fd), option[0], option[1])
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"keepalives": 1, "first after seconds": 1, "unanswered": 3, "unacknowledged ms": 2500} {
		if got[name] != want {
			t.Errorf("%s: %d, want %d", name, got[name], want)
		}
	}
	pipe, _ := ends(t)
	NoticeDeadPeer(pipe) // has no kernel
}
