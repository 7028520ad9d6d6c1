package callwire

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// golden is a frame of the file of frames: a message, and how it is appended and parsed.
type golden struct {
	kind   Kind
	call   uint32
	means  any
	append func(b []byte) []byte
	parse  func(f Frame) (any, error)
}

// ofConnection and ofOneCall are messages that are appended without and with the number of a call.
func ofConnection[M any](kind Kind, m M, parse func(Frame) (M, error)) golden {
	return golden{kind, 0, m, func(b []byte) []byte { return any(&m).(interface{ Append([]byte) []byte }).Append(b) }, parsing(parse)}
}

func ofOneCall[M any](kind Kind, call uint32, m M, parse func(Frame) (M, error)) golden {
	return golden{kind, call, m, func(b []byte) []byte { return any(&m).(appender).Append(b, call) }, parsing(parse)}
}

func counting(kind Kind, call, n uint32) golden {
	return golden{kind, call, n, func(b []byte) []byte { return AppendCount(b, kind, call, n) }, parsing(ParseCount)}
}

// bare is a frame without a payload.
func bare(kind Kind, call uint32) golden {
	return golden{kind, call, "", func(b []byte) []byte { return AppendFrame(b, kind, 0, call, nil) }, parsePayload}
}

func parsing[M any](parse func(Frame) (M, error)) func(Frame) (any, error) {
	return func(f Frame) (any, error) { return parse(f) }
}

func parsePayload(f Frame) (any, error) { return string(f.Payload), nil }

// sixteen are 16 bytes that begin with one.
func sixteen(first byte) (a [16]byte) {
	for i := range a {
		a[i] = first + byte(i)
	}
	return a
}

// goldens are what the lines of the file mean, by name. No field is zero, and together they have
// all flags.
var goldens = map[string]golden{
	"hello": ofConnection(KindHello, Hello{
		CID: "00000001-000001", ProtocolMin: 1, ProtocolMax: 2, Features: []string{"one", "two"}, Release: "v0.1.0",
		Resume: sixteen(0x10), Seen: 300,
	}, ParseHello),
	"welcome": ofConnection(KindWelcome, Welcome{
		Protocol: 1, Features: []string{"one"}, Release: "v0.1.0", Resume: sixteen(0x20),
	}, ParseWelcome),
	"claim": goldenClaim(1, Claim{Invocation: invocation.ID(sixteen(0x30)), Token: invocation.Token(sixteen(0x40))}),
	"call": ofOneCall(KindCall, 2, Call{
		Invocation: invocation.ID(sixteen(0x50)), Attempt: 3, Remaining: time.Minute,
		Method: "POST", RequestURI: "/path?query=1", Host: "example.com",
		Header: []Field{{Name: "Accept", Value: "*/*"}, {Name: "X-Empty", Value: ""}}, ContentLength: 4, Trailer: []string{"X-Sum"}, Upgrade: "websocket",
		ExpectContinue: true, Whole: true, Body: []byte("body"), CoreWait: 70 * time.Millisecond,
	}, ParseCall),
	"refused": {
		KindRefused, 3, RefusedBadToken,
		func(b []byte) []byte { return AppendRefused(b, 3, RefusedBadToken) }, parsing(ParseRefused),
	},
	"head": ofOneCall(KindHead, 2, Head{
		Status: 200, Upgrade: "websocket", Header: []Field{{Name: "Content-Type", Value: "text/plain"}}, ContentLength: 6, Trailer: []string{"X-Sum"},
		FunctionError: "Unhandled", BegunAfter: time.Microsecond, Exec: time.Millisecond,
		Cold: true, CoreWait: 2 * time.Millisecond, Whole: true, Keeps: true, Body: []byte("answer"),
	}, ParseHead),
	"body": {
		KindBody, 5, "part",
		func(b []byte) []byte { return AppendBody(b, 5, []byte("part")) }, parsePayload,
	},
	"end": ofOneCall(KindEnd, 5, End{
		Trailer: []Field{{Name: "X-Sum", Value: "1"}}, Cut: true, Failure: FailureTimedOut, Detail: "late", Exec: time.Second, Keeps: true,
	}, ParseEnd),
	"release":   ofOneCall(KindRelease, 6, Release{Reason: "leaving", Keeps: true, NoCredit: true}, ParseRelease),
	"cancel":    bare(KindCancel, 7),
	"window":    counting(KindWindow, 7, InitialWindow/4),
	"lend":      counting(KindLend, 0, 2),
	"take-back": counting(KindTakeBack, 0, 1),
	"return":    counting(KindReturn, 0, 3),
	"ping":      bare(KindPing, 0),
	"pong":      bare(KindPong, 0),
	"give-up":   bare(KindGiveUp, 2),
	"long-wait": {
		KindLongWait, 2, 50 * time.Millisecond,
		func(b []byte) []byte { return AppendLongWait(b, 2, 50*time.Millisecond) }, parsing(ParseLongWait),
	},
	"node": {KindNode, 0, true, func(b []byte) []byte { return AppendNode(b, true) }, parsing(ParseNode)},
}

func goldenClaim(call uint32, c Claim) golden {
	return golden{KindClaim, call, c, func(b []byte) []byte { return AppendClaim(b, call, c) }, parsing(ParseClaim)}
}

// Agents of earlier releases send and expect these bytes. Lines are never changed once a release
// was made: if this test fails then, the code is wrong, unless it adds a field at the end. Then
// what it sends is in a file of its own, and what is in this one must still be read.
func TestFramesAreTheBytesThatTheyWere(t *testing.T) {
	lines := goldenLines(t)
	for name, g := range goldens {
		t.Run(name, func(t *testing.T) {
			said := g.append(nil)
			if !bytes.Equal(said, lines[name]) {
				t.Fatalf("it is sent as %x, and was %x", said, lines[name])
			}
			f := one(t, lines[name])
			if f.Kind != g.kind || f.Call != g.call {
				t.Errorf("it is read as kind %d of call %d", f.Kind, f.Call)
			}
			if got, err := g.parse(f); err != nil || !reflect.DeepEqual(got, g.means) {
				t.Errorf("it is read as %+v, %v, and meant %+v", got, err, g.means)
			}
		})
	}
	for name := range lines {
		if _, is := goldens[name]; !is {
			t.Errorf("nothing says what %s means", name)
		}
	}
}

func TestThereIsAGoldenFrameOfEachKind(t *testing.T) {
	there := make(map[Kind]bool)
	for _, g := range goldens {
		there[g.kind] = true
	}
	for kind := KindHello; kind <= KindGiveUp; kind++ {
		if !there[kind] {
			t.Errorf("there is none of kind %d", kind)
		}
	}
}

// goldenLines are the frames of the file by their names.
func goldenLines(t *testing.T) map[string][]byte {
	text, err := os.ReadFile("testdata/frames-1.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := make(map[string][]byte)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		frame, err := hex.DecodeString(digits)
		if err != nil || lines[name] != nil {
			t.Fatalf("%s is not a line of its own with a frame: %v", name, err)
		}
		lines[name] = frame
	}
	return lines
}
