package podagent

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FuzzGateway has a gateway that holds two loans say anything: frames of any kind with any
// payload, and frames that make sense in a wrong order. The instance must not run more calls
// than its concurrency, and must be as free as before when the connection has ended.
func FuzzGateway(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{0, 0, 0, 0, 4, 0, 0, 4, 1, 5, 0, 2, 3})
	f.Add([]byte{1, 2, 2, 2, 5, 1, 7, 255, 4, 3, 0, 12, 4, 0, 0})
	f.Fuzz(func(t *testing.T, words []byte) {
		withHarness(t, nil, func(w *harness) { sayAnything(t, w, words) })
	})
}

func sayAnything(t *testing.T, w *harness, words []byte) {
	p := w.begin()
	p.lent("a")
	p.lent("b")
	pulled := 0
	g := w.claim()
	other := w.claim()
	for _, c := range []*claimed{g, other} {
		c.grant(get())
		(<-w.adapter.calls).hello()
		<-c.said
	}
	g.ignores.Store(true)
	p.hear("pull 0", "pull 0")
	stop := make(chan struct{})
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		for {
			select {
			case call := <-w.adapter.calls:
				go call.hello()
			case <-stop:
				return
			}
		}
	}()
	talk(g.gatewayEnd, words[:min(len(words), 200)])
	synctest.Wait()
	g.lose()
	synctest.Wait()
	for len(p.said) > 0 {
		var n int
		said := <-p.said
		if _, err := fmt.Sscanf(said, "pull %d", &n); err != nil {
			t.Fatalf("the agent said %q", said)
		}
		pulled += n
	}
	if most := w.adapter.most.Load(); most > 2 {
		t.Errorf("%d calls ran at a time", most)
	}
	if pulled != 2 {
		t.Errorf("it pulls %d calls, want 2", pulled)
	}
	p.retire("enough")
	w.ended(nil)
	close(stop)
	<-answered
}

// talk says what the words stand for.
func talk(g *gatewayEnd, words []byte) {
	word := func() byte {
		if len(words) == 0 {
			return 0
		}
		b := words[0]
		words = words[1:]
		return b
	}
	number := uint32(0)
	for len(words) > 0 {
		var frame func([]byte) []byte
		switch word() % 8 {
		case 0, 1:
			number += 2
			m := callwire.Call{Invocation: invocation.ID{1}, Method: "POST", RequestURI: "/", Remaining: 1 << 40, ContentLength: -1, Whole: word()%2 == 0}
			frame = func(b []byte) []byte { return m.Append(b, number) }
		case 2:
			n := uint32(word() % 4)
			frame = func(b []byte) []byte { return callwire.AppendCount(b, callwire.KindReturn, 0, n) }
		case 3:
			call := uint32(word() % 16)
			frame = func(b []byte) []byte { return callwire.AppendFrame(b, callwire.KindCancel, 0, call, nil) }
		case 4:
			call, part := uint32(word()%16), make([]byte, int(word())<<7)
			frame = func(b []byte) []byte { return callwire.AppendBody(b, call, part) }
		case 5:
			call, end := uint32(word()%16), callwire.End{Cut: word()%2 == 0}
			frame = func(b []byte) []byte { return end.Append(b, call) }
		case 6:
			call, n := uint32(word()%16), uint32(word())<<8
			frame = func(b []byte) []byte { return callwire.AppendCount(b, callwire.KindWindow, call, n) }
		case 7:
			kind, flags, call, most := callwire.Kind(word()), word(), uint32(word()), int(word()%32)
			payload := words[:min(len(words), most)]
			frame = func(b []byte) []byte {
				return callwire.AppendFrame(b, kind, flags, call, func(b []byte) []byte { return append(b, payload...) })
			}
			words = words[len(payload):]
		}
		g.write(frame)
		if word()%2 == 0 {
			synctest.Wait()
		}
	}
}
