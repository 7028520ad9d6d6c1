package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// None of them makes the server hold more, or start goroutines: it does one thing after the other.
func TestFloodsOfFramesEndTheConnection(t *testing.T) {
	header := func(id uint32) []byte {
		return appendFrame(nil, http2.FrameHeaders, http2.FlagHeadersEndHeaders, id, encoded(":method", "POST", ":path", agentwire.Instances_Pull_FullMethodName, "content-type", contentType)...)
	}
	for name, flood := range map[string]func(n int) []byte{
		"pings":                 func(int) []byte { return appendFrame(nil, http2.FramePing, 0, 0, make([]byte, 8)...) },
		"settings":              func(int) []byte { return appendSettings(nil, http2Window(5)) },
		"empty data":            func(int) []byte { return appendFrame(nil, http2.FrameData, 0, 1) },
		"data of old streams":   func(int) []byte { return appendFrame(nil, http2.FrameData, 0, 1, 'x') },
		"windows":               func(int) []byte { return appendWindow(nil, 0, 1) },
		"priorities":            func(int) []byte { return appendFrame(nil, http2.FramePriority, 0, 1, make([]byte, 5)...) },
		"unknown frames":        func(int) []byte { return appendFrame(nil, 0x77, 0, 0) },
		"more and more streams": func(n int) []byte { return header(uint32(2*n + 3)) },
		"rapid resets": func(n int) []byte {
			return appendReset(header(uint32(2*n+3)), uint32(2*n+3), http2.ErrCodeCancel)
		},
		"headers without an end": func(n int) []byte {
			if n == 0 {
				return appendFrame(nil, http2.FrameHeaders, 0, 3, encoded(":method", "POST")...)
			}
			return appendFrame(nil, http2.FrameContinuation, 0, 3, encoded(fmt.Sprint("name-", n), strings.Repeat("x", 1000))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				s := startScheduler(t, m, nil, answerPings)
				c := newRawAgent(t, m.dial())
				c.opens(1)
				c.says(1, ping, ping) // so that it is no stranger
				if name == "rapid resets" || name == "data of old streams" || name == "headers without an end" {
					_ = c.framer.WriteRSTStream(1, http2.ErrCodeCancel)
				}
				const most = 100_000
				n := 0
				for n < most {
					if _, err := c.conn.Write(flood(n)); err != nil {
						break
					}
					n++
				}
				synctest.Wait()
				if n > maxIdleFrames+2 {
					t.Errorf("%d were taken", n)
				}
				c.mu.Lock()
				if last := c.heard[len(c.heard)-1]; last != "closed" {
					t.Errorf("the last frame is %s", last)
				}
				c.mu.Unlock()
				s.end(t)
			})
		})
	}
}

// An honest agent's windows and pings are few, and messages come between them.
func TestFramesBetweenMessagesAreNoFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		c := newRawAgent(t, m.dial())
		c.opens(1)
		for n := range 3 * maxIdleFrames {
			_ = c.framer.WritePing(false, [8]byte{})
			if n%100 == 0 {
				c.says(1, ping)
			}
		}
		for range 5 { // and those of an agent that is quiet for long are spread
			for range maxIdleFrames / 2 {
				_ = c.framer.WritePing(false, [8]byte{})
			}
			time.Sleep(idleFramesWithin + time.Millisecond)
		}
		c.says(1, ping)
		synctest.Wait()
		c.mu.Lock()
		if last := c.heard[len(c.heard)-1]; last != pong {
			t.Errorf("the last frame is %s", last)
		}
		c.mu.Unlock()
		s.end(t)
	})
}

// A stranger may fail often, but what it sends for one stream is bounded.
func TestAStrangerOfPullsSendsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, func(stream pullServer) error {
			_, err := stream.Recv()
			return err
		})
		c := newRawAgent(t, m.dial())
		const streams = 200
		for id := uint32(1); id < 2*streams; id += 2 {
			c.opens(id)
			if err := c.framer.WriteData(id, false, messageBytes(helloOf(2000))); err != nil {
				t.Fatalf("stream %d: %v", id, err)
			}
		}
		sent := 0
		for sent < 10*strangerBytes && c.framer.WriteData(1, false, make([]byte, 1000)) == nil {
			sent += 1000
		}
		if sent > strangerBytes {
			t.Errorf("%d bytes were taken", sent)
		}
		synctest.Wait()
		if got := s.refused(codes.ResourceExhausted); got != 1 {
			t.Errorf("%v are counted", got)
		}
		s.end(t)
	})
}

func TestAThousandStrangersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		var conns []net.Conn
		for range maxStrangers {
			conns = append(conns, m.dial())
		}
		synctest.Wait()
		if took := say(t, m.dial(), nil); took != 0 {
			t.Errorf("one too many is served for %v", took)
		}
		for _, c := range conns {
			_ = c.Close()
		}
		s.end(t)
	})
}

// FuzzFramesOfAgents looks for frames that a server of agents' streams does not survive, or that it answers
// with what is no frame.
func FuzzFramesOfAgents(f *testing.F) {
	var opening bytes.Buffer
	framer := http2.NewFramer(&opening, nil)
	_ = framer.WriteSettings()
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, EndHeaders: true, BlockFragment: encoded(":method", "POST", ":path", agentwire.Instances_Pull_FullMethodName, "content-type", contentType)})
	seed := opening.Bytes()
	f.Add(seed, true)
	f.Add(append(bytes.Clone(seed), appendFrame(nil, http2.FrameData, 0, 1, messageBytes(ping, ping)...)...), true)
	f.Add(append(bytes.Clone(seed), appendFrame(nil, http2.FrameData, http2.FlagDataEndStream, 1, messageBytes(helloOf(10))...)...), false)
	f.Add(appendReset(appendWindow(bytes.Clone(seed), 1, 1000), 1, http2.ErrCodeCancel), false)
	f.Add(appendFrame(appendGoAway(appendSettings(bytes.Clone(seed), http2Window(1)), 0, 0, "x"), http2.FramePing, 0, 0, make([]byte, 8)...), true)
	f.Fuzz(func(t *testing.T, frames []byte, prefaced bool) {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			s := startScheduler(t, m, nil, answerPings)
			conn, said := m.dial(), make(chan struct{})
			go func() {
				defer close(said)
				_ = conn.SetWriteDeadline(time.Now().Add(time.Minute))
				if prefaced {
					_, _ = io.WriteString(conn, http2.ClientPreface)
				}
				_, _ = conn.Write(frames)
				time.Sleep(time.Minute) // until what has a limit of time is over
				_ = conn.Close()
			}()
			answers := http2.NewFramer(nil, conn)
			answers.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
			for {
				_, err := answers.ReadFrame()
				if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
					break
				}
				if err != nil {
					t.Fatalf("the server sends what is no frame: %v", err)
				}
			}
			<-said
			s.end(t)
		})
	})
}
