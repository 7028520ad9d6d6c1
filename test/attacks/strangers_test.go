package attacks

import (
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
)

// openConnections is more connections of strangers than a server keeps.
const openConnections = 1_500

// strangerAttacks measure what clients without certificate and token cost. They run
// alone, so that no other attack is measured.
var strangerAttacks = []attack{
	{"F103", "100 streams whose first message has 4 MiB", tooMuch, costs("first_messages", 4<<20, func(h func() *rawFrames, measure func()) (refused float64) {
		defer measure()
		const streams, length = 100, 4<<20 - 1
		conn := h()
		for n := range streams {
			conn.open(uint32(2*n + 1))
			_ = conn.framer.WriteData(uint32(2*n+1), false, []byte{0, length >> 24, length >> 16 & 0xff, length >> 8 & 0xff, length & 0xff})
		}
		conn.drain()
		_ = conn.conn.SetWriteDeadline(time.Now().Add(patience / 10))
		part := make([]byte, 16<<10)
		for range length / len(part) {
			for n := range streams {
				if conn.framer.WriteData(uint32(2*n+1), false, part) != nil {
					return streams
				}
			}
		}
		return streams
	})},
	{"F103", "1,000 streams that say nothing on each of 10 connections", tooMuch, costs("silent_streams", 16<<20, func(h func() *rawFrames, measure func()) (refused float64) {
		const some = 100 // before the connection has had enough
		for range 10 {
			conn := h()
			conn.drain()
			for n := range 1_000 {
				conn.open(uint32(2*n + 1))
			}
		}
		measure()
		return 10 * some
	})},
	{"F103", "200 connections whose first frame has 16 KiB and does not end", tooSlow, helloIsLate},
	{"F103", "1,500 connections that say nothing", "windlass_wire_unauthenticated_closed_total", func(w *platform) {
		// They are of another address than the honest ones.
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		for _, addr := range []string{w.scheduler, w.gateway} {
			for range openConnections {
				conn, err := dialer.Dial("tcp", addr)
				if err != nil {
					w.Fatal(err)
				}
				w.Cleanup(func() { _ = conn.Close() })
			}
		}
		ticket, _, responses := w.ticketOfEvil()
		w.answers(ticket, responses)
	}},
}

// costs runs an attack against a scheduler, and bounds by how many bytes the heap has grown when
// the attack says so. All that it began must be refused.
func costs(what string, most uint64, attack func(h func() *rawFrames, measure func()) (refused float64)) func(*platform) {
	return func(w *platform) {
		before := heap()
		refused := w.counter(onTheWire)
		want := attack(func() *rawFrames {
			h := w.newFrames(w.overTLS())
			h.path = pullPath
			return h
		}, func() { w.grew(what, "scheduler", before, most) })
		w.until("all are refused", func() bool { return w.counter(onTheWire) >= refused+want })
	}
}

// grew prints by how many bytes the heap has grown, and fails if it is more than most.
func (w *platform) grew(what, at string, before, most uint64) {
	grown := max(heap(), before) - before
	fmt.Fprintf(os.Stdout, "strangers_%s_heap_kib{at=%s}=%d\n", what, at, grown>>10)
	if grown > most {
		w.Errorf("the heap grew by %d bytes at the %s, want at most %d", grown, at, most)
	}
}

// helloIsLate opens connections with a gateway whose first frame has 16 KiB, all but the last
// byte.
func helloIsLate(w *platform) {
	const connections, most = 200, 200 * 96 << 10
	refused, before := w.counter(tooSlow), heap()
	hello := callwire.AppendFrame(nil, callwire.KindHello, 0, 0, func(b []byte) []byte { return append(b, make([]byte, callwire.MaxFirst)...) })
	for range connections {
		c := w.connected()
		w.Cleanup(c.close)
		_, _ = c.net.Write(hello[:len(hello)-1])
	}
	w.grew("first_frames", "gateway", before, most)
	w.until("all are refused", func() bool { return w.counter(tooSlow) >= refused+connections })
}

// heap is how many bytes are in use.
func heap() uint64 {
	goruntime.GC()
	goruntime.GC() // what came to an end during the first one
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

// open opens a stream as an agent does.
func (h *rawFrames) open(stream uint32) {
	h.headers(stream, false, ":method", "POST", ":scheme", "https", ":authority", "h", ":path", h.path,
		"content-type", "application/grpc", "te", "trailers")
}
