package callwire

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// codec is one message: how it is drawn, appended and parsed.
type codec struct {
	name   string
	draw   func(t *rapid.T) any
	append func(m any, b []byte, call uint32) []byte
	parse  func(f Frame) (any, error)
	// connection says that the message is not of a call.
	connection bool
}

// appender is a message of a call.
type appender interface {
	Append(b []byte, call uint32) []byte
}

func ofCall[M any](name string, draw func(t *rapid.T) M, parse func(Frame) (M, error)) codec {
	return codec{
		name: name, draw: func(t *rapid.T) any { return draw(t) },
		append: func(m any, b []byte, call uint32) []byte {
			v := m.(M)
			return any(&v).(appender).Append(b, call)
		},
		parse: func(f Frame) (any, error) { return parse(f) },
	}
}

var codecs = []codec{
	{
		name: "hello", connection: true, draw: func(t *rapid.T) any { return drawHello(t) },
		append: func(m any, b []byte, _ uint32) []byte { h := m.(Hello); return h.Append(b) },
		parse:  func(f Frame) (any, error) { return ParseHello(f) },
	},
	{
		name: "welcome", connection: true, draw: func(t *rapid.T) any { return drawWelcome(t) },
		append: func(m any, b []byte, _ uint32) []byte { w := m.(Welcome); return w.Append(b) },
		parse:  func(f Frame) (any, error) { return ParseWelcome(f) },
	},
	{
		name: "claim", draw: func(t *rapid.T) any { return drawClaim(t) },
		append: func(m any, b []byte, call uint32) []byte { return AppendClaim(b, call, m.(Claim)) },
		parse:  func(f Frame) (any, error) { return ParseClaim(f) },
	},
	ofCall("call", drawCall, ParseCall),
	ofCall("head", drawHead, ParseHead),
	ofCall("end", drawEnd, ParseEnd),
	ofCall("release", drawRelease, ParseRelease),
	{
		name: "refused", draw: func(t *rapid.T) any { return Refusal(rapid.Byte().Draw(t, "refusal")) },
		append: func(m any, b []byte, call uint32) []byte { return AppendRefused(b, call, m.(Refusal)) },
		parse:  func(f Frame) (any, error) { return ParseRefused(f) },
	},
	{
		name: "long-wait", draw: func(t *rapid.T) any { return drawDuration(t, "waited") },
		append: func(m any, b []byte, call uint32) []byte { return AppendLongWait(b, call, m.(time.Duration)) },
		parse:  func(f Frame) (any, error) { return ParseLongWait(f) },
	},
	{
		name: "window", draw: func(t *rapid.T) any { return rapid.Uint32().Draw(t, "count") },
		append: func(m any, b []byte, call uint32) []byte { return AppendCount(b, KindWindow, call, m.(uint32)) },
		parse:  func(f Frame) (any, error) { return ParseCount(f) },
	},
}

func drawFields(t *rapid.T, what string) []Field {
	fields := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Field {
		return Field{Name: rapid.String().Draw(t, "name"), Value: rapid.String().Draw(t, "value")}
	}), 0, 8).Draw(t, what)
	if len(fields) == 0 {
		return nil
	}
	return fields
}

func drawNames(t *rapid.T, what string) []string {
	names := rapid.SliceOfN(rapid.String(), 0, 4).Draw(t, what)
	if len(names) == 0 {
		return nil
	}
	return names
}

func draw16(t *rapid.T, what string) (a [16]byte) {
	copy(a[:], rapid.SliceOfN(rapid.Byte(), len(a), len(a)).Draw(t, what))
	return a
}

func drawDuration(t *rapid.T, what string) time.Duration {
	return time.Duration(rapid.Int64Min(0).Draw(t, what))
}

func drawLength(t *rapid.T) int64 { return rapid.Int64Range(-1, math.MaxInt64-1).Draw(t, "length") }

func drawBody(t *rapid.T) []byte { return rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "body") }

func drawHello(t *rapid.T) Hello {
	return Hello{
		CID: rapid.String().Draw(t, "cid"), ProtocolMin: rapid.Uint32().Draw(t, "min"), ProtocolMax: rapid.Uint32().Draw(t, "max"),
		Features: drawNames(t, "features"), Release: rapid.String().Draw(t, "release"),
		Resume: draw16(t, "resume"), Seen: rapid.Uint32().Draw(t, "seen"),
	}
}

func drawWelcome(t *rapid.T) Welcome {
	return Welcome{
		Protocol: rapid.Uint32().Draw(t, "protocol"), Features: drawNames(t, "features"),
		Release: rapid.String().Draw(t, "release"), Resume: draw16(t, "resume"),
	}
}

func drawClaim(t *rapid.T) Claim {
	return Claim{Invocation: invocation.ID(draw16(t, "invocation")), Token: invocation.Token(draw16(t, "token"))}
}

func drawCall(t *rapid.T) Call {
	return Call{
		Invocation: invocation.ID(draw16(t, "invocation")), Attempt: int(rapid.Uint32().Draw(t, "attempt")), Remaining: drawDuration(t, "remaining"),
		Method: rapid.String().Draw(t, "method"), RequestURI: rapid.String().Draw(t, "uri"), Host: rapid.String().Draw(t, "host"),
		Header: drawFields(t, "header"), ContentLength: drawLength(t), Trailer: drawNames(t, "trailer"),
		Upgrade: rapid.String().Draw(t, "upgrade"), ExpectContinue: rapid.Bool().Draw(t, "expect"),
		Whole: rapid.Bool().Draw(t, "whole"), Body: drawBody(t), CoreWait: drawDuration(t, "core wait"),
	}
}

func drawHead(t *rapid.T) Head {
	return Head{
		Status: int(rapid.Uint32().Draw(t, "status")), Upgrade: rapid.String().Draw(t, "upgrade"), Header: drawFields(t, "header"),
		ContentLength: drawLength(t), Trailer: drawNames(t, "trailer"), FunctionError: rapid.String().Draw(t, "error"),
		BegunAfter: drawDuration(t, "begun"), Exec: drawDuration(t, "exec"), Cold: rapid.Bool().Draw(t, "cold"),
		Whole: rapid.Bool().Draw(t, "whole"), Keeps: rapid.Bool().Draw(t, "keeps"), Body: drawBody(t),
		CoreWait: drawDuration(t, "core wait"),
	}
}

func drawEnd(t *rapid.T) End {
	return End{
		Trailer: drawFields(t, "trailer"), Cut: rapid.Bool().Draw(t, "cut"), Failure: FailureKind(rapid.Byte().Draw(t, "failure")),
		Detail: rapid.String().Draw(t, "detail"), Exec: drawDuration(t, "exec"), Keeps: rapid.Bool().Draw(t, "keeps"),
	}
}

func drawRelease(t *rapid.T) Release {
	return Release{Reason: rapid.String().Draw(t, "reason"), Keeps: rapid.Bool().Draw(t, "keeps"), NoCredit: rapid.Bool().Draw(t, "nocredit")}
}

// one is the only frame in b.
func one(t interface{ Fatalf(string, ...any) }, b []byte) Frame {
	f, need, err := parseFrame(b, MaxPayload)
	if err != nil || need != len(b) {
		t.Fatalf("it takes %d of %d bytes, %v", need, len(b), err)
	}
	return f
}

func TestMessagesComeAsTheyWereSent(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m, call := c.draw(t), rapid.Uint32().Draw(t, "call")
				before := drawBody(t)
				b := c.append(m, bytes.Clone(before), call)
				f := one(t, b[len(before):])
				if c.connection {
					call = 0
				}
				if f.Call != call {
					t.Fatalf("the frame is of call %d, not %d", f.Call, call)
				}
				got, err := c.parse(f)
				if err != nil || !reflect.DeepEqual(got, m) {
					t.Fatalf("%+v came as %+v, %v", m, got, err)
				}
			})
		})
	}
}

func TestFieldsOfLaterReleasesAreIgnored(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				m := c.draw(t)
				f := one(t, c.append(m, nil, 1))
				f.Payload = append(bytes.Clone(f.Payload), drawBody(t)...)
				f.Flags |= 1 << 7
				got, err := c.parse(f)
				if err != nil || !reflect.DeepEqual(got, m) {
					t.Fatalf("%+v came as %+v, %v", m, got, err)
				}
			})
		})
	}
}

// An earlier release sends the first fields of a message only.
func TestFieldsOfEarlierReleasesAreZero(t *testing.T) {
	for _, c := range codecs {
		t.Run(c.name, func(t *testing.T) {
			kind := one(t, c.append(c.example(1), nil, 1)).Kind
			got, err := c.parse(Frame{Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			want := reflect.New(reflect.TypeOf(got)).Elem()
			if c.name == "call" || c.name == "head" { // it is not known then
				want.FieldByName("ContentLength").SetInt(-1)
			}
			if !reflect.DeepEqual(got, want.Interface()) {
				t.Errorf("an empty one is %+v, want %+v", got, want)
			}
		})
	}
}

// example is a message of the codec.
func (c codec) example(n int) any {
	return rapid.Custom(func(t *rapid.T) any { return c.draw(t) }).Example(n)
}

func TestMessagesThatAreCutOffAreErrors(t *testing.T) {
	head := Head{Status: 200, Header: []Field{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}, Trailer: []string{"x"}, Body: []byte("body"), Whole: true}
	whole := one(t, head.Append(nil, 2))
	errs := 0
	for n := range whole.Payload {
		cut := whole
		cut.Payload = whole.Payload[:n]
		if _, err := ParseHead(cut); errors.Is(err, ErrFrame) {
			errs++
		} else if err != nil {
			t.Errorf("cut off after %d bytes: %v is no ErrFrame", n, err)
		}
	}
	if errs < 10 {
		t.Errorf("only %d of %d cuts are errors", errs, len(whole.Payload))
	}
}

func TestMessagesThatAreNotValidAreErrors(t *testing.T) {
	huge := bytes.Repeat([]byte{0xff}, 9)
	huge = append(huge, 1) // as a varint, the largest number
	for name, c := range map[string]struct {
		parse func(Frame) error
		frame Frame
	}{
		"another first frame":       {failing(ParseHello), Frame{Kind: KindClaim}},
		"another answer to a hello": {failing(ParseWelcome), Frame{Kind: KindCall}},
		"a varint without an end":   {failing(ParseRefused), Frame{Kind: KindRefused, Payload: huge[:9]}},
		"a count that is too large": {failing(ParseCount), Frame{Kind: KindWindow, Payload: huge}},
		"an id of a wrong length":   {failing(ParseClaim), Frame{Kind: KindClaim, Payload: []byte{2, 1, 1}}},
		"more fields than bytes":    {failing(ParseEnd), Frame{Kind: KindEnd, Payload: append([]byte{0, 0}, huge...)}},
		"fields that are missing":   {failing(ParseEnd), Frame{Kind: KindEnd, Payload: []byte{0, 0, 2, 1, 'a', 1, 'b'}}},
		"more names than bytes":     {failing(ParseWelcome), Frame{Kind: KindWelcome, Payload: append([]byte{1}, huge...)}},
		"a length that is too large": {
			failing(ParseHead), Frame{Kind: KindHead, Payload: append([]byte{200, 1, 0}, huge...)},
		},
	} {
		if err := c.parse(c.frame); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func failing[M any](parse func(Frame) (M, error)) func(Frame) error {
	return func(f Frame) error { _, err := parse(f); return err }
}

func TestNumbersOfLaterReleasesAreNoKnownOnes(t *testing.T) {
	if why, err := ParseRefused(Frame{Kind: KindRefused, Payload: []byte{0x81, 2}}); err != nil || why == RefusedNotWaiting { // 257
		t.Errorf("257 is read as %d, %v", why, err)
	}
	if e, err := ParseEnd(Frame{Kind: KindEnd, Payload: []byte{0x80, 2}}); err != nil || e.Failure == 0 { // 256
		t.Errorf("256 is read as %d, %v", e.Failure, err)
	}
}

func TestDurationsAreNeverNegative(t *testing.T) {
	for sent, want := range map[time.Duration]time.Duration{-time.Second: 0, math.MaxInt64: math.MaxInt64} {
		e := End{Exec: sent}
		if got, err := ParseEnd(one(t, e.Append(nil, 1))); err != nil || got.Exec != want {
			t.Errorf("%v came as %v, %v", sent, got.Exec, err)
		}
	}
	most := append(bytes.Repeat([]byte{0xff}, 9), 1)
	if got, err := ParseEnd(Frame{Kind: KindEnd, Payload: append([]byte{0}, most...)}); err != nil || got.Exec != math.MaxInt64 {
		t.Errorf("the largest number came as %v, %v", got.Exec, err)
	}
}

func TestFramesAreAsLongAsTheirHeaderSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind, flags, call := Kind(rapid.Byte().Draw(t, "kind")), rapid.Byte().Draw(t, "flags"), rapid.Uint32().Draw(t, "call")
		payload := drawBody(t)
		b := AppendFrame(nil, kind, flags, call, func(b []byte) []byte { return append(b, payload...) })
		for n := range b {
			if _, need, err := parseFrame(b[:n], MaxPayload); err != nil || need <= n {
				t.Fatalf("%d of %d bytes are taken for a frame of %d, %v", n, len(b), need, err)
			}
		}
		f := one(t, b)
		if f.Kind != kind || f.Flags != flags || f.Call != call || !bytes.Equal(f.Payload, payload) {
			t.Fatalf("it came as %+v", f)
		}
		if _, _, err := parseFrame(b, len(payload)-1); len(payload) > 0 && !errors.Is(err, ErrFrame) {
			t.Fatalf("a frame that is too long: %v", err)
		}
	})
}
