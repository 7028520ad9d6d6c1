package serve

import (
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
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

func TestS2AClientThatIsAskedForMoreIsNoStranger(t *testing.T) {
	server, client := net.Pipe()
	defer client.Close()
	conn := newPeerConn(server, newStrangerLimiter(prometheus.NewRegistry()), time.Now())
	defer conn.Close()
	conn.limiter.admit(conn)
	s := &guardedStream{ServerStream: silent{}, conn: conn, late: time.NewTimer(time.Hour)}
	if conn.proven.Load() {
		t.Error("proven before a message")
	}
	if err := s.RecvMsg(nil); err != nil || !conn.proven.Load() || conn.limiter.count != 0 {
		t.Errorf("%v; after a message with a certificate it is still a stranger", err)
	}
}

// silent is a stream whose messages are empty.
type silent struct{ grpc.ServerStream }

func (silent) RecvMsg(any) error { return nil }
