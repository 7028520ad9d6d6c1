package gateway_test

import (
	"encoding/binary"
	"testing"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// sendUnknown sends a frame of a kind that this release does not know.
func (i *instance) sendUnknown() {
	i.agent.write(func(b []byte) []byte {
		return callwire.AppendFrame(b, 200, 0xff, i.number, func(b []byte) []byte { return append(b, "new"...) })
	})
}

// sendLater sends a frame with a further field and a further flag.
func (i *instance) sendLater(add func([]byte) []byte) {
	frame := add(nil)
	frame[5] |= 0x80
	frame = append(frame, 3, 'n', 'e', 'w')
	binary.BigEndian.PutUint32(frame, binary.BigEndian.Uint32(frame)+4)
	i.agent.write(func(b []byte) []byte { return append(b, frame...) })
}

// FuzzLaterAgent has a later agent answer a call and say more at moments that the data
// chooses. The client must get the answer.
func FuzzLaterAgent(f *testing.F) {
	f.Add([]byte{0, 1, 2})
	f.Add([]byte{2, 2, 0, 0})
	f.Fuzz(func(t *testing.T, moments []byte) {
		w := newHarness(t)
		answers := w.call(w.get("/function/hello/"))
		i := w.claim(w.scheduler.ticket())
		more := func(moment byte) {
			for _, m := range moments[:min(len(moments), 64)] {
				if m%3 == moment {
					i.sendUnknown()
				}
			}
		}
		more(0)
		i.sendLater(func(b []byte) []byte { return (&callwire.Head{Status: 200, ContentLength: -1}).Append(b, i.number) })
		more(1)
		i.body("hi")
		more(2)
		i.sendLater(func(b []byte) []byte { return (&callwire.End{}).Append(b, i.number) })
		if a := wrote(t, answers, 200, invocation.ExecutedYes); a.body != "hi" {
			t.Errorf("answered %q", a.body)
		}
		i.ended()
	})
}
