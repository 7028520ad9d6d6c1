package callwire

import (
	"bytes"
	"errors"
	"io"
	"net"
	"reflect"
	"runtime"
	"testing"
	"time"
)

// What parsing may allocate: a multiple of the payload, since a field of two bytes becomes two
// strings of 16 bytes each and its text, and some bytes more for errors.
const (
	allocFactor = 24
	allocSlack  = 4 << 10
)

// fuzzParse checks a Parse function: it never panics, allocates little, fails with ErrFrame only,
// and what it has read comes again from what is appended of it.
func fuzzParse(f *testing.F, c codec) {
	for n := range 4 {
		frame := one(f, c.append(c.example(n), nil, 2))
		f.Add(byte(frame.Kind), frame.Flags, frame.Payload)
	}
	f.Add(byte(KindEnd), byte(0), []byte{0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Fuzz(func(t *testing.T, kind, flags byte, payload []byte) {
		if len(payload) > MaxPayload {
			return
		}
		frame := Frame{Kind: Kind(kind), Flags: flags, Call: 2, Payload: payload}
		before := bytes.Clone(payload)
		m, err := c.parse(frame)
		if !bytes.Equal(payload, before) {
			t.Fatal("it has changed the payload")
		}
		if most := uint64(allocFactor*len(payload) + allocSlack); allocatesMore(most, func() { _, _ = c.parse(frame) }) {
			t.Errorf("it allocates more than %d bytes for %d", most, len(payload))
		}
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Errorf("%v is no ErrFrame", err)
			}
			return
		}
		again, err := c.parse(one(t, c.append(m, nil, 2)))
		if err != nil || !reflect.DeepEqual(m, again) && !sameButEmpty(m, again) {
			t.Errorf("%+v comes again as %+v, %v", m, again, err)
		}
	})
}

// sameButEmpty compares messages without regard to whether an empty body is nil.
func sameButEmpty(a, b any) bool {
	return reflect.DeepEqual(withoutEmptyBody(a), withoutEmptyBody(b))
}

func withoutEmptyBody(m any) any {
	switch m := m.(type) {
	case Call:
		if len(m.Body) == 0 {
			m.Body = nil
		}
		return m
	case Head:
		if len(m.Body) == 0 {
			m.Body = nil
		}
		return m
	}
	return m
}

// allocatesMore reports whether a function allocates more bytes than it may. Others allocate
// too, so it does only if it does in each of a few tries.
func allocatesMore(than uint64, do func()) bool {
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		if after.TotalAlloc-before.TotalAlloc <= than {
			return false
		}
	}
	return true
}

func codecOf(name string) codec {
	for _, c := range codecs {
		if c.name == name {
			return c
		}
	}
	panic("no codec " + name)
}

func FuzzParseHello(f *testing.F)    { fuzzParse(f, codecOf("hello")) }
func FuzzParseWelcome(f *testing.F)  { fuzzParse(f, codecOf("welcome")) }
func FuzzParseClaim(f *testing.F)    { fuzzParse(f, codecOf("claim")) }
func FuzzParseCall(f *testing.F)     { fuzzParse(f, codecOf("call")) }
func FuzzParseRefused(f *testing.F)  { fuzzParse(f, codecOf("refused")) }
func FuzzParseHead(f *testing.F)     { fuzzParse(f, codecOf("head")) }
func FuzzParseEnd(f *testing.F)      { fuzzParse(f, codecOf("end")) }
func FuzzParseRelease(f *testing.F)  { fuzzParse(f, codecOf("release")) }
func FuzzParseLongWait(f *testing.F) { fuzzParse(f, codecOf("long-wait")) }
func FuzzParseCount(f *testing.F)    { fuzzParse(f, codecOf("window")) }

// FuzzRead reads what a stranger sends, in pieces: Read never panics, holds little, and returns
// the frames that parse finds in the whole.
func FuzzRead(f *testing.F) {
	hello := Hello{CID: "cid", ProtocolMax: 1}
	claim := Claim{}
	conversation := AppendBody(AppendClaim(hello.Append(nil), 1, claim), 1, []byte("body"))
	f.Add(conversation, 3, true)
	f.Add(AppendFrame(conversation, 200, 0, 0, nil), 1, false)
	f.Add(AppendFrame(conversation, KindPing, 0, 0, nil), 100, true)
	f.Add([]byte{0, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0}, 12, true)
	f.Fuzz(func(t *testing.T, sent []byte, piece int, trusted bool) {
		conn := Accept(&saying{rest: sent, piece: max(piece, 1)}, time.Hour, nil)
		limit := MaxFirst
		if trusted {
			conn.Trust()
			limit = MaxPayload
		}
		for rest := sent; ; {
			want, need, bad := parseFrame(rest, limit)
			if bad == nil && need <= len(rest) {
				if rest = rest[need:]; !want.Kind.isForCaller() {
					continue
				}
			}
			got, err := conn.Read()
			if most := limit + headerLen + firstBuffer; cap(conn.in) > most {
				t.Fatalf("it holds %d bytes", cap(conn.in))
			}
			switch {
			case bad != nil && !errors.Is(err, ErrFrame):
				t.Fatalf("instead of %v it says %v", bad, err)
			case bad == nil && err == nil && !reflect.DeepEqual(got, want):
				t.Fatalf("it has read %+v, not %+v", got, want)
			case bad == nil && err != nil && (!errors.Is(err, io.EOF) || want.Payload != nil):
				t.Fatalf("instead of %+v it says %v", want, err)
			}
			if err != nil {
				return
			}
		}
	})
}

// saying is a connection by which something comes in pieces, and whose other side takes all.
type saying struct {
	net.Conn
	rest  []byte
	piece int
}

func (s *saying) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), s.piece)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

func (s *saying) Write(p []byte) (int, error)      { return len(p), nil }
func (s *saying) SetReadDeadline(time.Time) error  { return nil }
func (s *saying) SetWriteDeadline(time.Time) error { return nil }
func (s *saying) Close() error                     { return nil }
