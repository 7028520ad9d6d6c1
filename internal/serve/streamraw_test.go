package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
)

// rawAgent is a client without gRPC's good manners.
type rawAgent struct {
	t      *testing.T
	conn   net.Conn
	framer *http2.Framer

	mu    sync.Mutex
	heard []string
	// widened is how often the window of the connection became that of a stream.
	widened int
}

// newRawAgent connects a client that has said its preface, and has heard the server's settings.
func newRawAgent(t *testing.T, conn net.Conn) *rawAgent {
	t.Helper()
	c := &rawAgent{t: t, conn: conn, framer: http2.NewFramer(conn, conn)}
	c.framer.ReadMetaHeaders = hpack.NewDecoder(0, nil)
	go c.listen()
	_, _ = io.WriteString(conn, http2.ClientPreface)
	_ = c.framer.WriteSettings()
	c.hears("settings HEADER_TABLE_SIZE=0 MAX_CONCURRENT_STREAMS=1 INITIAL_WINDOW_SIZE=262144 MAX_HEADER_LIST_SIZE=16384")
	return c
}

func (c *rawAgent) listen() {
	for {
		f, err := c.framer.ReadFrame()
		text := "closed"
		if err == nil {
			text = frameText(f)
		} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
			text = err.Error()
		}
		c.mu.Lock()
		if text == "window 0 196609" {
			c.widened++
		} else {
			c.heard = append(c.heard, text)
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func frameText(f http2.Frame) string {
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return "settings ack"
		}
		text := "settings"
		_ = f.ForeachSetting(func(s http2.Setting) error {
			text += fmt.Sprintf(" %v=%d", s.ID, s.Val)
			return nil
		})
		return text
	case *http2.MetaHeadersFrame:
		text := fmt.Sprintf("headers %d", f.StreamID)
		if f.StreamEnded() {
			text += " ends"
		}
		for _, field := range f.Fields {
			text += " " + field.Name + "=" + field.Value
		}
		return text
	case *http2.DataFrame:
		return fmt.Sprintf("data %d of %d bytes", f.StreamID, len(f.Data()))
	case *http2.PingFrame:
		return fmt.Sprintf("ping %q ack %v", f.Data[:1], f.IsAck())
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("reset %d %v", f.StreamID, f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Sprintf("goaway %d %v", f.LastStreamID, f.ErrCode)
	case *http2.WindowUpdateFrame:
		return fmt.Sprintf("window %d %d", f.StreamID, f.Increment)
	}
	return f.Header().String()
}

// hears expects what has come since it was called last.
func (c *rawAgent) hears(want ...string) {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.heard, want) {
		c.t.Errorf("the client heard\n%s\nwant\n%s", strings.Join(c.heard, "\n"), strings.Join(want, "\n"))
	}
	c.heard = nil
}

func encoded(pairs ...string) []byte { return encodeHeaders(pairs...) }

// opens opens an agent's stream; more are headers that replace those of an agent.
func (c *rawAgent) opens(stream uint32, more ...string) {
	pairs := []string{":method", "POST", ":scheme", "http", ":authority", "h", ":path", agentwire.Instances_Pull_FullMethodName, "content-type", contentType, "te", "trailers"}
	for i := 0; i < len(more); i += 2 {
		at := slices.Index(pairs, more[i])
		pairs[at+1] = more[i+1]
	}
	_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: encoded(pairs...), EndHeaders: true})
}

// messageBytes are messages with their prefixes.
func messageBytes(messages ...*agentwire.PullRequest) (b []byte) {
	for _, m := range messages {
		text, err := proto.Marshal(m)
		if err != nil {
			panic(err)
		}
		b = append(binary.BigEndian.AppendUint32(append(b, 0), uint32(len(text))), text...)
	}
	return b
}

// says sends messages, in frames of 16 KiB.
func (c *rawAgent) says(stream uint32, messages ...*agentwire.PullRequest) {
	for part := range slices.Chunk(messageBytes(messages...), minFrame) {
		_ = c.framer.WriteData(stream, false, part)
	}
}

func http2Window(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingInitialWindowSize, Val: n}
}

const (
	begun = "headers 1 :status=200 content-type=application/grpc"
	pong  = "data 1 of 7 bytes"
)

// alone is how a stream ends that gets no message.
func alone(stream, httpStatus int, code codes.Code, text string) []string {
	return []string{
		fmt.Sprintf("headers %d ends :status=%d content-type=application/grpc grpc-status=%d grpc-message=%s", stream, httpStatus, code, text),
		fmt.Sprintf("reset %d NO_ERROR", stream),
	}
}

func TestWhatFramesOfAnAgentLeadTo(t *testing.T) {
	const path = ":path"
	ack := "settings ack" // of the settings that newRawAgent has sent
	for name, c := range map[string]struct {
		does func(c *rawAgent)
		want []string
		code codes.Code // that is counted; OK for none
	}{
		"messages in one frame": {func(c *rawAgent) { c.opens(1); c.says(1, ping, ping, ping) }, []string{ack, begun, pong, pong, pong}, codes.OK},
		"a message in bytes": {func(c *rawAgent) {
			c.opens(1)
			for _, b := range messageBytes(ping, ping) {
				_ = c.framer.WriteDataPadded(1, false, []byte{b}, make([]byte, 3))
			}
		}, []string{ack, begun, pong, pong}, codes.OK},
		"the end of the client's half": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, true, messageBytes(ping))
		}, []string{ack, begun, pong, "headers 1 ends grpc-status=0"}, codes.OK},
		"trailers of the client": {func(c *rawAgent) {
			c.opens(1)
			c.says(1, ping)
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: encoded("a", "b"), EndHeaders: true, EndStream: true})
		}, []string{ack, begun, pong, "headers 1 ends grpc-status=0"}, codes.OK},
		"the end within a message": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, true, messageBytes(ping)[:3])
		}, []string{ack, "headers 1 ends :status=200 content-type=application/grpc grpc-status=13 grpc-message=the stream ended within a message"}, codes.OK},
		"pings and settings": {func(c *rawAgent) {
			_ = c.framer.WritePing(false, [8]byte{'a'})
			c.opens(1)
			_ = c.framer.WritePing(false, [8]byte{'b'})
			_ = c.framer.WritePing(true, [8]byte{'c'})
			_ = c.framer.WriteSettings(http2.Setting{ID: 0x99, Val: 1})
			_ = c.framer.WriteSettingsAck()
			_ = c.framer.WriteRawFrame(0x77, 0, 1, []byte("who knows"))
			_ = c.framer.WritePriority(1, http2.PriorityParam{Weight: 3})
			_ = c.framer.WriteGoAway(0, http2.ErrCodeNo, nil)
			c.says(1, ping)
		}, []string{`ping "a" ack true`, ack, `ping "b" ack true`, ack, begun, pong}, codes.OK},
		"another method after a stream": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, true, nil)
			c.opens(3, path, "/windlass.control.v1alpha1.Scheduler/Slots")
		}, append([]string{ack, "headers 1 ends :status=200 content-type=application/grpc grpc-status=0"},
			alone(3, 200, codes.Unimplemented, `there is no method "/windlass.control.v1alpha1.Scheduler/Slots" on a connection that began with "/windlass.agent.v1alpha1.Instances/Pull"`)...), codes.OK},
		"another content type": {func(c *rawAgent) { c.opens(1, "content-type", "application/json") },
			append([]string{ack}, alone(1, 415, codes.InvalidArgument, `the content type is "application/json": this server takes application/grpc`)...), codes.InvalidArgument},
		"another encoding": {func(c *rawAgent) { c.opens(1, "content-type", "application/grpc+json") },
			append([]string{ack}, alone(1, 415, codes.InvalidArgument, `the content type is "application/grpc+json": this server takes application/grpc`)...), codes.InvalidArgument},
		"content types of gRPC": {func(c *rawAgent) { c.opens(1, "content-type", "application/grpc+proto;charset=x"); c.says(1, ping) }, []string{ack, begun, pong}, codes.OK},
		"GET":                   {func(c *rawAgent) { c.opens(1, ":method", "GET") }, append([]string{ack}, alone(1, 405, codes.Internal, `the method is "GET": gRPC uses POST`)...), codes.OK},
		"a compressed message": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, false, []byte{1, 0, 0, 0, 0})
		}, append([]string{ack}, alone(1, 200, codes.Unimplemented, "the message is compressed: this server takes none that are")...), codes.OK},
		"a long first message": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, false, []byte{0, 0, 0, 0x40, 1})
		}, append([]string{ack}, alone(1, 200, codes.ResourceExhausted, "the first message is longer than 16384 bytes")...), codes.ResourceExhausted},
		"nothing": {func(c *rawAgent) {
			c.opens(1)
			time.Sleep(firstMessageTimeout)
		}, append([]string{ack}, alone(1, 200, codes.DeadlineExceeded, "the first message did not come within 5s")...), codes.DeadlineExceeded},
		"a part of a message": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, false, messageBytes(ping)[:6])
			time.Sleep(firstMessageTimeout)
		}, append([]string{ack}, alone(1, 200, codes.DeadlineExceeded, "the first message did not come within 5s")...), codes.DeadlineExceeded},
		"a part of a frame": {func(c *rawAgent) {
			c.opens(1)
			_, _ = c.conn.Write([]byte{0, 0, 100, 0, 0, 0, 0, 0, 1, 0})
			time.Sleep(firstMessageTimeout + frameWithin)
		}, []string{ack, "closed"}, codes.OK},
		"two streams": {func(c *rawAgent) { c.opens(1); c.opens(3); c.says(1, ping) }, []string{ack, "reset 3 REFUSED_STREAM", begun, pong}, codes.ResourceExhausted},
		"data after the stream": {func(c *rawAgent) {
			c.opens(1, "content-type", "text/plain")
			c.says(1, ping)
			_ = c.framer.WriteRSTStream(1, http2.ErrCodeCancel)
			_ = c.framer.WriteWindowUpdate(1, 5)
			c.opens(3)
			c.says(3, ping)
		}, append(append([]string{ack}, alone(1, 415, codes.InvalidArgument, `the content type is "text/plain": this server takes application/grpc`)...),
			strings.Replace(begun, "1", "3", 1), "data 3 of 7 bytes"), codes.InvalidArgument},
		"a reset": {func(c *rawAgent) {
			c.opens(1)
			c.says(1, ping)
			_ = c.framer.WriteRSTStream(1, http2.ErrCodeCancel)
			c.opens(3)
			c.says(3, ping)
		}, []string{ack, begun, pong, strings.Replace(begun, "1", "3", 1), "data 3 of 7 bytes"}, codes.OK},
		"windows are given back": {func(c *rawAgent) {
			c.opens(1)
			c.says(1, ping)
			synctest.Wait() // the reply is another goroutine's
			c.says(1, helloOf(200<<10))
		},
			[]string{ack, begun, pong, "window 0 131079", "window 1 131079", "data 1 of 16384 bytes", "data 1 of 16384 bytes", "data 1 of 16384 bytes", "data 1 of 16376 bytes"}, codes.OK},

		"no preface":                   {func(c *rawAgent) { c.opens(1); _, _ = io.WriteString(c.conn, "GET / HTTP/1.1\r\n\r\n") }, []string{ack, "goaway 1 FRAME_SIZE_ERROR", "closed"}, codes.OK},
		"a stream with an even number": {func(c *rawAgent) { c.opens(1); c.opens(2) }, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"an old stream":                {func(c *rawAgent) { c.opens(5); c.opens(3) }, []string{ack, "goaway 5 PROTOCOL_ERROR", "closed"}, codes.OK},
		"headers within a stream":      {func(c *rawAgent) { c.opens(1); c.opens(1) }, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"data of no stream":            {func(c *rawAgent) { c.opens(1); c.says(7, ping) }, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"a reset of no stream":         {func(c *rawAgent) { c.opens(1); _ = c.framer.WriteRSTStream(7, 0) }, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"a window of no stream":        {func(c *rawAgent) { c.opens(1); _ = c.framer.WriteWindowUpdate(7, 1) }, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"a window that is too large":   {func(c *rawAgent) { c.opens(1); _ = c.framer.WriteWindowUpdate(0, 1<<31-1) }, []string{ack, "goaway 1 FLOW_CONTROL_ERROR", "closed"}, codes.OK},
		"a stream's window, too large": {func(c *rawAgent) { c.opens(1); _ = c.framer.WriteWindowUpdate(1, 1<<31-1) }, []string{ack, "goaway 1 FLOW_CONTROL_ERROR", "closed"}, codes.OK},
		"settings that are not valid": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})
		}, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"a promise": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WritePushPromise(http2.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"a continuation of nothing": {func(c *rawAgent) { c.opens(1); _ = c.framer.WriteContinuation(1, true, nil) }, []string{ack, "goaway 1 PROTOCOL_ERROR", "closed"}, codes.OK},
		"a frame that is too large": {func(c *rawAgent) { c.opens(1); _ = c.framer.WriteData(1, false, make([]byte, minFrame+1)) }, []string{ack, "goaway 1 FRAME_SIZE_ERROR", "closed"}, codes.OK},
		"a table of headers": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: []byte{0xbe}, EndHeaders: true})
		}, []string{ack, "goaway 1 COMPRESSION_ERROR", "closed"}, codes.OK},
		"data after the end of its half": {func(c *rawAgent) {
			c.opens(1)
			_ = c.framer.WriteData(1, true, messageBytes(ping))
			c.says(1, ping)
		}, []string{ack, begun, pong, "headers 1 ends grpc-status=0"}, codes.OK},
		"a header that is not allowed": {func(c *rawAgent) {
			c.opens(1)
			c.says(1, ping)
			_ = c.framer.WriteRSTStream(1, 0)
			_ = c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: encoded("UPPER", "case"), EndHeaders: true})
			c.opens(5)
			c.says(5, ping)
		}, []string{ack, begun, pong, "reset 3 PROTOCOL_ERROR", strings.Replace(begun, "1", "5", 1), "data 5 of 7 bytes"}, codes.OK},
		"headers that are a bit too long": {func(c *rawAgent) { c.opens(1, "te", strings.Repeat("x", maxWireHeaders)) }, append([]string{ack}, alone(1, 431, codes.ResourceExhausted, "the headers are longer than 16384 bytes")...), codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				s := startScheduler(t, m, nil, answerPings)
				agent := newRawAgent(t, m.dial())
				c.does(agent)
				synctest.Wait()
				if c.want != nil {
					agent.hears(c.want...)
				}
				if c.code != codes.OK && s.refused(c.code) != 1 {
					t.Errorf("it is not counted as %v", c.code)
				}
				s.end(t)
			})
		})
	}
}

func TestAgentsSayInTimeThatTheySpeakHTTP2(t *testing.T) {
	for name, c := range map[string]struct {
		said string
		took time.Duration
	}{
		"nothing":             {"", handshakeWithin},
		"a part of a preface": {http2.ClientPreface[:5], handshakeWithin},
		"a preface alone":     {http2.ClientPreface, handshakeWithin},
		"HTTP/1":              {"GET / HTTP/1.1\r\nHost: here\r\n\r\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				s := startScheduler(t, m, nil, answerPings)
				if took := say(t, m.dial(), []byte(c.said)); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				s.end(t)
			})
		})
	}
}

// gRPC's server acknowledges the settings that came before its connection, and answers no ping twice.
func TestGRPCGetsWhatHasComeBeforeTheFirstStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := startScheduler(t, m, nil, answerPings)
		c := newRawAgent(t, m.dial())
		_ = c.framer.WriteSettingsAck()
		_ = c.framer.WritePing(false, [8]byte{'a'})
		_ = c.framer.WriteSettings(http2Window(100_000))
		_ = c.framer.WriteWindowUpdate(0, 100)
		c.hears(`ping "a" ack true`)
		c.opens(1, ":path", "/none/None")
		c.hears(
			"settings MAX_FRAME_SIZE=16384 MAX_CONCURRENT_STREAMS=1100 INITIAL_WINDOW_SIZE=262144 MAX_HEADER_LIST_SIZE=16384",
			"window 0 983041", "settings ack", "settings ack",
			"headers 1 ends :status=200 content-type=application/grpc grpc-status=12 grpc-message=unknown service none",
			"reset 1 NO_ERROR",
		)
		_ = c.framer.WritePing(false, [8]byte{'b'})
		c.hears(`ping "b" ack true`)
		s.end(t)
	})
}
