package serve

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// from is a connection of an address.
func from(d *strangerLimiter, host string, since time.Time) *peerConn {
	return &peerConn{Conn: nopConn{}, limiter: d, host: host, since: since}
}

type nopConn struct{ net.Conn }

func TestS2AThousandAgentsBehindOneAddressFindRoom(t *testing.T) {
	d, now := newStrangerLimiter(prometheus.NewRegistry()), time.Now()
	for n := range 1000 {
		if d.admit(from(d, "nat", now)) != nil {
			t.Fatalf("agent %d finds no room", n)
		}
	}
}

func TestS2StrangersOfOneAddressDoNotKeepOutOthers(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		host  string
		after time.Duration
		goes  string // the oldest, the newest, or who arrives
	}{
		"one more of the address with the most":          {"crowd", time.Second, "arriving"},
		"one more of it, and the oldest had enough time": {"crowd", proveWithin + time.Second, "oldest"},
		"another address":                          {"other", time.Second, "newest"},
		"another address, and the oldest had time": {"other", proveWithin + time.Second, "oldest"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newStrangerLimiter(prometheus.NewRegistry())
			for n := range 10 {
				d.admit(from(d, "few", now.Add(-time.Hour+time.Duration(n))))
			}
			var many []*peerConn
			for n := range maxStrangers - 10 {
				many = append(many, from(d, "crowd", now.Add(time.Duration(n))))
				d.admit(many[n])
			}
			arriving := from(d, c.host, now.Add(c.after))
			want := map[string]*peerConn{"arriving": arriving, "oldest": many[0], "newest": many[len(many)-1]}[c.goes]
			if d.admit(arriving) != want {
				t.Errorf("it is not the %s who goes", c.goes)
			}
			if d.count != maxStrangers || len(d.from["few"]) != 10 {
				t.Errorf("%d strangers, %d of few", d.count, len(d.from["few"]))
			}
		})
	}
}

func TestS2WhoLeavesOrProvesHimselfMakesRoom(t *testing.T) {
	d, now := newStrangerLimiter(prometheus.NewRegistry()), time.Now()
	for n := range 3 * maxStrangers {
		server, client := net.Pipe()
		c := newPeerConn(server, d, now)
		if d.admit(c) != nil {
			t.Fatalf("number %d finds no room", n)
		}
		if n%2 == 0 {
			c.prove()
		} else {
			_ = c.Close()
		}
		_, _ = client.Close(), c.Close()
	}
	if d.count != 0 || len(d.from) != 0 {
		t.Errorf("%d strangers of %d addresses are left", d.count, len(d.from))
	}
}

// pipe is a stranger's connection, and the other end of it.
func pipe() (c *peerConn, client net.Conn) {
	server, client := net.Pipe()
	d := newStrangerLimiter(prometheus.NewRegistry())
	c = newPeerConn(server, d, time.Now())
	d.admit(c)
	return c, client
}

func TestS2AStrangerIsReadNoFartherThanItsBound(t *testing.T) {
	const sent = 10 * strangerBytes
	for name, c := range map[string]struct {
		free func(c *peerConn, leave func())
		more int // how much more is read then
	}{
		"nothing happens":       {func(*peerConn, func()) {}, 0},
		"its stream ends":       {func(_ *peerConn, leave func()) { leave() }, sent - strangerBytes},
		"another stream begins": {func(c *peerConn, leave func()) { _, _ = c.acquireStream(nil); leave() }, 0},
		"its first is accepted": {func(c *peerConn, _ func()) { c.prove() }, sent - strangerBytes},
		"the connection is cut": {func(c *peerConn, _ func()) { _ = c.Close() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, client := pipe()
				go func() {
					_, _ = client.Write(make([]byte, sent))
				}()
				leave, err := conn.acquireStream(nil)
				if err != nil {
					t.Fatal(err)
				}
				var read int
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					buffer := make([]byte, 32<<10)
					for {
						n, err := conn.Read(buffer)
						if read += n; err != nil {
							return
						}
					}
				}()
				synctest.Wait()
				if read != strangerBytes {
					t.Errorf("%d bytes are read", read)
				}
				c.free(conn, leave)
				synctest.Wait()
				if more := read - strangerBytes; more != c.more {
					t.Errorf("%d more bytes are read, want %d", more, c.more)
				}
				_, _ = conn.Close(), client.Close()
				<-ended
			})
		})
	}
}

func TestS2MoreStreamsThanAStrangerMayHaveWait(t *testing.T) {
	for name, c := range map[string]struct {
		then func(c *peerConn, leave func())
		want codes.Code
	}{
		"until one ends":          {func(_ *peerConn, leave func()) { leave() }, codes.OK},
		"until one was accepted":  {func(c *peerConn, _ func()) { c.prove() }, codes.OK},
		"and refused if none did": {func(*peerConn, func()) { time.Sleep(firstMessageTimeout) }, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, client := pipe()
				defer func() { _, _ = conn.Close(), client.Close() }()
				var leave func()
				for range strangerStreams {
					leave, _ = conn.acquireStream(nil)
				}
				got := make(chan error, 1)
				go func() {
					out, err := conn.acquireStream(time.After(firstMessageTimeout))
					if err == nil {
						out()
					}
					got <- err
				}()
				synctest.Wait()
				if len(got) > 0 || len(conn.limiter.parked) != 1 {
					t.Fatal("it does not wait")
				}
				c.then(conn, leave)
				if err := <-got; status.Code(err) != c.want {
					t.Errorf("it ended with %v", err)
				}
				if len(conn.limiter.parked) != 0 {
					t.Error("it still takes the place of one that waits")
				}
			})
		})
	}
}

func TestS2NoMoreStreamsWaitThanThereIsRoomFor(t *testing.T) {
	conn, client := pipe()
	defer func() { _, _ = conn.Close(), client.Close() }()
	for range strangerStreams {
		_, _ = conn.acquireStream(nil)
	}
	for range maxParked {
		conn.limiter.parked <- struct{}{}
	}
	if _, err := conn.acquireStream(nil); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one too many gets %v", err)
	}
	if conn.live != strangerStreams {
		t.Errorf("%d streams are counted", conn.live)
	}
}

// A claim of a call that began before gets no answer, and its result may be large.
func TestS2WhoeverIsAskedForMoreIsNoStranger(t *testing.T) {
	conn, client := pipe()
	defer func() { _, _ = conn.Close(), client.Close() }()
	for n := range 2 {
		if conn.isProven() {
			t.Fatalf("proven after %d messages", n)
		}
		s := &guardedStream{ServerStream: silent{}, conn: conn, stranger: true, messages: n, late: time.NewTimer(time.Hour)}
		_ = s.RecvMsg(nil)
	}
	if !conn.isProven() {
		t.Error("still a stranger")
	}
	for _, stranger := range []bool{true, false} {
		other, end := pipe()
		_ = (&guardedStream{ServerStream: silent{}, conn: other, stranger: stranger, late: time.NewTimer(time.Hour)}).RecvMsg(nil)
		if other.isProven() == stranger {
			t.Errorf("proven: %v, although without a certificate: %v", other.isProven(), stranger)
		}
		_, _ = other.Close(), end.Close()
	}
}

// silent is a stream whose messages are empty.
type silent struct{ grpc.ServerStream }

func (silent) RecvMsg(any) error { return nil }
