package sameuser

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// Listen accepts what processes of this process's own user connect, and closes what others
// do. Where the system does not tell, it accepts all.
func Listen(l net.Listener) net.Listener { return listener{l, os.Getuid()} }

type listener struct {
	net.Listener
	uid int
}

func (l listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil || l.mayConnect(c) {
			return c, err
		}
		_ = c.Close()
	}
}

func (l listener) mayConnect(c net.Conn) bool {
	theirs, ours := addrOf(c.RemoteAddr()), addrOf(c.LocalAddr())
	if !theirs.IsValid() || !ours.IsValid() {
		return true // no port: files and memory have rights of their own
	}
	told := false
	for _, table := range tables {
		file, err := os.Open(table)
		if err != nil {
			continue
		}
		uid, found := owner(file, theirs, ours)
		_ = file.Close()
		if found {
			return uid == l.uid
		}
		told = true
	}
	return !told
}

func addrOf(a net.Addr) netip.AddrPort {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	at := tcp.AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// owner is the user of the socket between two addresses, from local's side, in a table
// such as /proc/net/tcp.
func owner(table io.Reader, local, remote netip.AddrPort) (uid int, found bool) {
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 8 || !isAddr(fields[1], local) || !isAddr(fields[2], remote) {
			continue
		}
		uid, err := strconv.Atoi(fields[7])
		return uid, err == nil
	}
	return 0, false
}

// isAddr tells whether the kernel writes an address so: in words of the machine's order,
// one of version 4 perhaps as one of version 6.
func isAddr(text string, a netip.AddrPort) bool {
	if a.Addr().Is4() && text == hex(a.Addr().AsSlice())+port(a) {
		return true
	}
	as16 := a.Addr().As16()
	return text == hex(as16[:])+port(a)
}

func hex(address []byte) (text string) {
	for ; len(address) > 0; address = address[4:] {
		text += fmt.Sprintf("%08X", binary.NativeEndian.Uint32(address))
	}
	return text
}

func port(a netip.AddrPort) string { return fmt.Sprintf(":%04X", a.Port()) }
