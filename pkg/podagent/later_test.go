package podagent

import (
	"encoding/binary"
	"io"
	"reflect"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/windlass-dev/windlass/api/wire"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/wiretest"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// FuzzLaterScheduler says whatever a scheduler may say as a later release would. The
// agent must take it as what it knows of it.
func FuzzLaterScheduler(f *testing.F) {
	for _, reply := range []*agentwire.PullReply{
		{Kind: &agentwire.PullReply_Ticket{Ticket: &agentwire.Ticket{InvocationId: make([]byte, 16), Gateway: "g:1", Lent: true}}},
		{Kind: &agentwire.PullReply_Leave{Leave: &agentwire.LeaveReply{Granted: true}}},
		{Kind: &agentwire.PullReply_Drain{Drain: &agentwire.Drain{Reason: agentwire.Drain_REASON_UNSUPPORTED, Detail: "old"}}},
		{Kind: &agentwire.PullReply_Moved{Moved: &agentwire.Moved{Address: "s:1", Epoch: 7}}},
		{Kind: &agentwire.PullReply_Welcome{Welcome: &agentwire.Welcome{Epoch: 7, Protocol: 1, Features: []string{"made-up"}}}},
		{Kind: &agentwire.PullReply_Assignment{Assignment: &agentwire.Assignment{FunctionUid: "u", Variables: []*agentwire.Variable{{Name: "A"}}}}},
		{Kind: &agentwire.PullReply_Recall{Recall: &agentwire.Recall{Gateway: "g:1", Calls: 2}}},
		{Kind: &agentwire.PullReply_Ended{Ended: &agentwire.Ended{How: "it exited"}}},
	} {
		text, err := proto.Marshal(reply)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	speech := wire.Speech{Min: 1, Max: 2}
	f.Fuzz(func(t *testing.T, text []byte) {
		said := &agentwire.PullReply{}
		if proto.Unmarshal(text, said) != nil {
			return
		}
		plain, err := fromWire(said, speech)
		if err != nil {
			return // a ticket without a call, which no release sends
		}
		if later, err := fromWire(heard(t, wiretest.Newer(said)), speech); err != nil || !reflect.DeepEqual(later, plain) {
			t.Errorf("with fields that are not known it is %#v, %v; without, %#v", later, err, plain)
		}
		if renamed, is := wiretest.Renamed(said); is {
			if later, err := fromWire(heard(t, renamed), speech); err != nil || reflect.TypeOf(later) != reflect.TypeOf(plain) {
				t.Errorf("with values that are not known it is %#v, %v; without, %#v", later, err, plain)
			}
		}
		if later, err := fromWire(heard(t, wiretest.Beyond(said)), speech); err != nil || later != (core.Pong{}) {
			t.Errorf("a member that is not known is taken for %#v, %v", later, err)
		}
	})
}

// heard is a message as it comes out of the wire.
func heard[M proto.Message](t *testing.T, said M) M {
	t.Helper()
	text, err := proto.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	proto.Reset(said)
	if err := proto.Unmarshal(text, said); err != nil {
		t.Fatal(err)
	}
	return said
}

// FuzzLaterGateway has a later gateway hand over a call and say more at moments that the data
// chooses: frames of kinds that are not known, and fields behind those that are. The call must
// come to its end.
func FuzzLaterGateway(f *testing.F) {
	f.Add([]byte{0, 1, 2})
	f.Add([]byte{2, 2, 0, 0})
	f.Fuzz(func(t *testing.T, moments []byte) {
		withHarness(t, nil, func(w *harness) {
			p := w.begin()
			p.ticket("a")
			c := w.claim()
			more := func(moment byte) {
				for _, m := range moments[:min(len(moments), 64)] {
					if m%3 == moment {
						c.write(func(b []byte) []byte {
							return callwire.AppendFrame(b, callwire.KindGiveUp+1+callwire.Kind(m%200), m, c.number, func(b []byte) []byte { return append(b, moments...) })
						})
					}
				}
			}
			more(0)
			call := callwire.Call{Invocation: c.claim.Invocation, Remaining: time.Minute, Attempt: 1, Method: "GET", RequestURI: "/", ContentLength: -1}
			c.write(longer(moments, func(b []byte) []byte { return call.Append(b, c.number) }))
			more(1)
			got := <-w.adapter.calls
			c.body("hi")
			more(2)
			end := callwire.End{}
			c.write(longer(moments, func(b []byte) []byte { return end.Append(b, c.number) }))
			if body, err := io.ReadAll(got.Body); string(body) != "hi" || err != nil {
				t.Errorf("the body is %q, %v", body, err)
			}
			got.hello()
			c.hear(`head 200 cold whole "hello"`)
			c.hearEnd()
			p.retire("test")
			w.ended(nil)
		})
	})
}

// longer is a frame with fields that only a later release knows.
func longer(fields []byte, frame func([]byte) []byte) func([]byte) []byte {
	fields = fields[:min(len(fields), 1000)]
	return func(b []byte) []byte {
		start := len(b)
		b = append(frame(b), fields...)
		binary.BigEndian.PutUint32(b[start:], binary.BigEndian.Uint32(b[start:])+uint32(len(fields)))
		return b
	}
}
