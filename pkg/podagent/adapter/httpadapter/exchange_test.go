package httpadapter

import (
	"io"
	"net"
	"testing"
)

// pair is a connection and its other end.
func pair(t *testing.T) (*conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return &conn{Conn: near}, far
}

func newExchange() *exchange { return &exchange{onEnd: func() {}} }

func TestKeptConnectionIsLookedAtBeforeTheFirstByte(t *testing.T) {
	for _, tc := range []struct {
		name string
		far  func(net.Conn)
		dead bool
	}{
		{"open and silent", func(net.Conn) {}, false},
		{"closed", func(c net.Conn) { c.Close() }, true},
		{"closed by a reset", func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() }, true},
		{"holding bytes that nobody asked for", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 408 \r\n\r\n") }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, far := pair(t)
			tc.far(far)
			e := newExchange()
			e.attach(c, true)
			n, err := io.WriteString(c, "GET /")
			if dead := err != nil; dead != tc.dead || (dead && n != 0) {
				t.Errorf("wrote %d bytes with error %v, want dead %t", n, err, tc.dead)
			}
			if wrote := e.seal(); wrote == tc.dead {
				t.Errorf("the account says wrote %t", wrote)
			}
		})
	}
}

func TestSecondConnectionIsRefusedAfterTheFirstByte(t *testing.T) {
	first, _ := pair(t)
	second, _ := pair(t)
	e := newExchange()
	e.attach(first, false)
	if _, err := io.WriteString(first, "GET /"); err != nil {
		t.Fatal(err)
	}
	if e.attach(second, false) {
		t.Error("a second connection was not refused")
	}
	for name, c := range map[string]*conn{"first": first, "second": second} {
		if n, err := io.WriteString(c, "GET /"); n != 0 || err == nil {
			t.Errorf("%s connection: wrote %d bytes more, error %v", name, n, err)
		}
	}
	if !e.seal() {
		t.Error("the account says that nothing was written")
	}
}

func TestSecondConnectionIsFineWhileNothingWasWritten(t *testing.T) {
	first, far := pair(t)
	far.Close()
	second, _ := pair(t)
	e := newExchange()
	e.attach(first, true)
	if _, err := io.WriteString(first, "GET /"); err == nil {
		t.Fatal("the first connection took a byte")
	}
	if !e.attach(second, false) {
		t.Error("the second connection was refused")
	}
	if _, err := io.WriteString(second, "GET /"); err != nil {
		t.Error(err)
	}
	if _, err := io.WriteString(first, "GET /"); err == nil {
		t.Error("the first connection still takes bytes")
	}
}

func TestNothingIsWrittenOnceTheAccountIsSealed(t *testing.T) {
	c, _ := pair(t)
	e := newExchange()
	e.attach(c, false)
	if e.seal() {
		t.Error("the account says that something was written")
	}
	if n, err := io.WriteString(c, "GET /"); n != 0 || err == nil {
		t.Errorf("wrote %d bytes, error %v", n, err)
	}
}
