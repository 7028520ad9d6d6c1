package callwire

import (
	"io"
	"testing"
	"time"
)

// warm are the two frames of a call by a loan, as a small call has them.
var (
	warmCall = Call{
		Attempt: 1, Remaining: time.Minute, Method: "POST", RequestURI: "/path?query=1", Host: "example.com",
		Header: []Field{
			{Name: "Accept", Value: "*/*"}, {Name: "Content-Type", Value: "application/json"}, {Name: "User-Agent", Value: "bench/1.0"},
			{Name: "X-Forwarded-For", Value: "192.0.2.1"}, {Name: "Traceparent", Value: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		},
		ContentLength: 100, Whole: true, Body: make([]byte, 100),
	}
	warmHead = Head{
		Status: 200, Header: []Field{{Name: "Content-Type", Value: "application/json"}, {Name: "Date", Value: "Wed, 25 Nov 2026 19:24:00 GMT"}},
		ContentLength: 100, BegunAfter: time.Microsecond, Exec: time.Millisecond, Whole: true, Keeps: true, Body: make([]byte, 100),
	}
)

func BenchmarkAppendCall(b *testing.B) {
	b.ReportAllocs()
	buffer := make([]byte, 0, 4<<10)
	for b.Loop() {
		buffer = warmCall.Append(buffer[:0], 2)
	}
}

func BenchmarkParseCall(b *testing.B) {
	b.ReportAllocs()
	f := one(b, warmCall.Append(nil, 2))
	for b.Loop() {
		if _, err := ParseCall(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendHead(b *testing.B) {
	b.ReportAllocs()
	buffer := make([]byte, 0, 4<<10)
	for b.Loop() {
		buffer = warmHead.Append(buffer[:0], 2)
	}
}

func BenchmarkParseHead(b *testing.B) {
	b.ReportAllocs()
	f := one(b, warmHead.Append(nil, 2))
	for b.Loop() {
		if _, err := ParseHead(f); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConn writes a call, and reads it.
func BenchmarkConn(b *testing.B) {
	b.ReportAllocs()
	wire := new(straight)
	from, to := NewConn(wire, nil), NewConn(wire, nil)
	for b.Loop() {
		from.Commit(warmCall.Append(from.Begin(), 2))
		if f, err := to.Read(); err != nil || f.Kind != KindCall {
			b.Fatal(f.Kind, err)
		}
	}
}

// straight is a connection that reads what it writes.
type straight struct {
	saying
	held []byte
}

func (s *straight) Write(p []byte) (int, error) {
	s.held = append(s.held, p...)
	return len(p), nil
}

func (s *straight) Read(p []byte) (int, error) {
	if len(s.held) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.held)
	s.held = s.held[:copy(s.held, s.held[n:])]
	return n, nil
}

// Encoding a call or an answer allocates nothing, nor do connections.
func TestTheWayOfASmallCallAllocatesLittle(t *testing.T) {
	wire, buffer := new(straight), make([]byte, 0, 4<<10)
	from, to := NewConn(wire, nil), NewConn(wire, nil)
	call, head := one(t, warmCall.Append(nil, 2)), one(t, warmHead.Append(nil, 2))
	for name, c := range map[string]struct {
		do   func()
		most float64
	}{
		"appending a call":   {func() { warmCall.Append(buffer, 2) }, 0},
		"appending a head":   {func() { warmHead.Append(buffer, 2) }, 0},
		"parsing a call":     {func() { _, _ = ParseCall(call) }, 6}, // method, path, host; the header's text twice, and its fields
		"parsing a head":     {func() { _, _ = ParseHead(head) }, 3},
		"sending and coming": {func() { from.Commit(warmCall.Append(from.Begin(), 2)); _, _ = to.Read() }, 0},
	} {
		if got := testing.AllocsPerRun(100, c.do); got > c.most {
			t.Errorf("%s allocates %v times, more than %v", name, got, c.most)
		}
	}
}

// While a client and a function send each other a large body, a window of it often waits to be
// written, with the opening of the other window.
func TestAWindowOfABodyIsWrittenFromBuffersThatAreKept(t *testing.T) {
	conn, part := NewConn(new(saying), nil), make([]byte, InitialWindow/2)
	window := func() {
		conn.CommitLater(AppendBody(conn.Begin(), 1, part))
		conn.CommitLater(AppendBody(conn.Begin(), 1, part))
		conn.CommitLater(AppendCount(conn.Begin(), KindWindow, 1, InitialWindow))
		conn.Flush()
	}
	window() // there are two buffers: one is written, one is appended to
	if got := testing.AllocsPerRun(100, window); got > 0 {
		t.Errorf("a window allocates %v times", got)
	}
}
