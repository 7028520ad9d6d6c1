package sameuser

import (
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestS7OnlyTheSameUserIsAccepted(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells whose socket it is")
	}
	for name, c := range map[string]struct {
		uid  int
		want string
	}{
		"the same": {os.Getuid(), "hello"},
		"another":  {os.Getuid() + 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan struct{})
			go func() {
				defer close(served)
				for l := (listener{inner, c.uid}); ; {
					accepted, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(accepted, "hello")
					_ = accepted.Close()
				}
			}()
			conn, err := net.Dial("tcp", inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(conn)
			_ = conn.Close()
			_ = inner.Close()
			<-served
			if string(got) != c.want {
				t.Errorf("heard %q, want %q", got, c.want)
			}
		})
	}
}

func TestS7OwnersAreReadFromTheKernelsTable(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the table of this test is one of a little-endian machine")
	}
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:1F90 0100007F:C001 01 00000000:00000000 00:00000000 00000000  1000        0 2 1
   2: 0100007F:C001 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 3 1
   3: 0000000000000000FFFF00000100007F:C002 0000000000000000FFFF00000100007F:1F90 01 00000000:00000000 00:00000000 00000000  1002        0 4 1
   4: 00000000000000000000000001000000:C003 00000000000000000000000001000000:1F90 01 00000000:00000000 00:00000000 00000000  1003        0 5 1
   5: cut
`
	for local, want := range map[string]int{
		"127.0.0.1:49153": 1001, "127.0.0.1:49154": 1002, "[::1]:49155": 1003, "127.0.0.1:49156": -1,
	} {
		remote := "127.0.0.1:8080"
		if strings.HasPrefix(local, "[") {
			remote = "[::1]:8080"
		}
		uid, found := owner(strings.NewReader(table), netip.MustParseAddrPort(local), netip.MustParseAddrPort(remote))
		if !found {
			uid = -1
		}
		if uid != want {
			t.Errorf("%s belongs to %d, want %d", local, uid, want)
		}
	}
}
