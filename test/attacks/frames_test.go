package attacks

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// rawFrames is an HTTP/2 connection without a client's good manners.
type rawFrames struct {
	w      *platform
	conn   net.Conn
	framer *http2.Framer
	block  bytes.Buffer
	hpack  *hpack.Encoder
	path   string // of the method that open calls
}

func (w *platform) newFrames(conn net.Conn, settings ...http2.Setting) *rawFrames {
	w.Helper()
	h := &rawFrames{w: w, conn: conn, framer: http2.NewFramer(conn, conn)}
	h.hpack = hpack.NewEncoder(&h.block)
	h.hpack.SetMaxDynamicTableSizeLimit(0) // schedulers keep none
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		w.Fatal(err)
	}
	if err := h.framer.WriteSettings(settings...); err != nil {
		w.Fatal(err)
	}
	return h
}

// headers opens a stream; pairs are names and values.
func (h *rawFrames) headers(stream uint32, end bool, pairs ...string) {
	_ = h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: h.encode(pairs...), EndStream: end, EndHeaders: true})
}

func (h *rawFrames) encode(pairs ...string) []byte {
	h.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		_ = h.hpack.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	return bytes.Clone(h.block.Bytes())
}

// drain reads and drops what comes, until the connection ends.
func (h *rawFrames) drain() {
	go func() { _, _ = io.Copy(io.Discard, h.conn) }()
}

const pullPath = "/windlass.agent.v1alpha1.Instances/Pull"

// eachPort runs an attack on frames against every server that speaks HTTP/2.
func eachPort(run func(w *platform, h *rawFrames, headers []string)) func(*platform) {
	return func(w *platform) {
		run(w, w.newFrames(w.dial(w.calls)), []string{":method", "GET", ":scheme", "http", ":authority", "h", ":path", attackPath})
		run(w, w.newFrames(w.overTLS()), []string{
			":method", "POST", ":scheme", "https", ":authority", "h", ":path", pullPath, "content-type", "application/grpc", "te", "trailers",
		})
	}
}

var frames = []attack{
	{"F79", "5,000 streams that are reset at once", "", eachPort(func(_ *platform, h *rawFrames, headers []string) {
		// To evil's queue would be no different, but these may run: they are no
		// /attack then. What counts is that an honest client is served.
		for i, name := range headers {
			if name == attackPath {
				headers[i] = "/function/evil.shop/"
			}
		}
		h.drain()
		for id := uint32(1); id < 10_000; id += 2 {
			h.headers(id, true, headers...)
			if h.framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
				return // it had enough
			}
		}
	})},
	{"F79", "headers that never end", "", eachPort(func(w *platform, h *rawFrames, headers []string) {
		h.drain()
		_ = h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h.encode(headers...), EndStream: true})
		part := h.encode("x-a", strings.Repeat("a", 8<<10))
		for sent := 0; sent < 64<<20; sent += len(part) {
			if h.framer.WriteContinuation(1, false, part) != nil {
				return
			}
		}
		w.Error("64 MiB of headers were taken")
	})},
	{"F79", "settings and pings whose answers nobody reads", "", eachPort(func(w *platform, h *rawFrames, _ []string) {
		// A gateway that can send no answers any more need not go on reading either.
		_ = h.conn.SetWriteDeadline(time.Now().Add(patience / 5))
		for sent := range 5_000_000 {
			if h.framer.WritePing(false, [8]byte{byte(sent)}) != nil || h.framer.WriteSettings() != nil {
				return
			}
			if sent == 1_000_000 {
				w.Log("a million pings and settings were taken")
				return
			}
		}
	})},
	{"F79", "pings of an agent whose answers nobody reads", "", func(w *platform) {
		c := w.connected()
		defer c.close()
		b := (&callwire.Hello{CID: agentCID}).Append(nil)
		pings := bytes.Repeat(callwire.AppendFrame(nil, callwire.KindPing, 0, 0, nil), 1_000)
		// An agent with a valid claim may ping as often as it likes.
		ticket, _, _ := w.ticketOfEvil()
		claim := callwire.Claim{Invocation: invocation.ID(ticket.GetInvocationId()), Token: invocation.Token(ticket.GetToken())}
		_, _ = c.net.Write(callwire.AppendClaim(b, 1, claim))
		_ = c.net.SetWriteDeadline(time.Now().Add(patience))
		const most = 64 << 20
		for sent := 0; sent < most; sent += len(pings) {
			if _, err := c.net.Write(pings); err != nil {
				return
			}
		}
		w.Errorf("%d bytes of pings were taken", most)
	}},
	{"F79", "frames that make no sense", "", func(w *platform) {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		for name, write := range map[string]func(h *rawFrames){
			"data on no stream":     func(h *rawFrames) { _ = h.framer.WriteRawFrame(http2.FrameData, 0x1, 0, []byte(marker)) },
			"a header on no stream": func(h *rawFrames) { _ = h.framer.WriteRawFrame(http2.FrameHeaders, 0x5, 0, nil) },
			"a block that is no HPACK": func(h *rawFrames) {
				_ = h.framer.WriteRawFrame(http2.FrameHeaders, 0x5, 1, []byte("\xff\xff\xff\xff\xff"))
			},
			"a window beyond its end": func(h *rawFrames) {
				_ = h.framer.WriteRawFrame(http2.FrameWindowUpdate, 0, 0, []byte("\x7f\xff\xff\xff"))
			},
			"a push": func(h *rawFrames) { _ = h.framer.WriteRawFrame(http2.FramePushPromise, 0x4, 1, make([]byte, 8)) },
			"a continuation of nothing": func(h *rawFrames) {
				_ = h.framer.WriteRawFrame(http2.FrameContinuation, 0x4, 1, make([]byte, 8))
			},
			"a frame of 16 MiB": func(h *rawFrames) { _, _ = h.conn.Write([]byte("\xff\xff\xff\x00\x00\x00\x00\x00\x01")) },
		} {
			for _, dial := range []func() net.Conn{
				func() net.Conn { return w.dial(w.calls) },
				func() net.Conn { return w.overTLS() },
			} {
				h := w.newFrames(dial())
				write(h)
				// It ends the connection, or has it ended for not answering pings.
				waiting.Go(func() {
					if _, err := io.Copy(io.Discard, h.conn); isTimeout(err) {
						w.Errorf("%s: the connection goes on", name)
					}
				})
			}
		}
	}},
	{"F79", "frames to a gateway that make no sense", onTheWire + "{method=callwire}", func(w *platform) {
		var waiting sync.WaitGroup
		defer waiting.Wait()
		hello := (&callwire.Hello{CID: agentCID, ProtocolMin: 1, ProtocolMax: 1}).Append(nil)
		for name, text := range map[string][]byte{
			"HTTP/1.1":            []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n"),
			"HTTP/2":              []byte(http2.ClientPreface),
			"zero bytes":          make([]byte, 1<<10),
			"a claim first":       callwire.AppendClaim(nil, 1, callwire.Claim{}),
			"a hello that is cut": callwire.AppendFrame(nil, callwire.KindHello, 0, 0, func(b []byte) []byte { return append(b, 200) }),
			"another protocol":    (&callwire.Hello{CID: agentCID, ProtocolMin: 1000, ProtocolMax: 1000}).Append(nil),
			"the length of 4 GiB": append(bytes.Clone(hello), 255, 255, 255, 255, 3, 0, 0, 0, 0, 0, 0, 1),
			"frames without end":  append(bytes.Clone(hello), bytes.Repeat(callwire.AppendFrame(nil, 200, 0, 0, nil), 100_000)...),
		} {
			c := w.connected()
			waiting.Go(func() {
				if took := c.says(text); took > patience/2 {
					w.Errorf("%s: the connection goes on for %v", name, took)
				}
			})
		}
	}},
	{"F87", "HTTP/2 headers that are not allowed", "", func(w *platform) {
		base := []string{":method", "GET", ":scheme", "http", ":authority", "h", ":path", attackPath}
		for name, more := range map[string][]string{
			"an upper-case name":  {"X-A", "a"},
			"an encoding":         {"transfer-encoding", "chunked"},
			"a connection header": {"connection", "close"},
			"a line feed":         {"x-a", "a\r\nwindlass-executed: yes"},
			"a name with a colon": {"x:a", "b"},
			"a late pseudo":       {"x-a", "a", ":path", "/"},
		} {
			h := w.newFrames(w.dial(w.calls))
			h.headers(1, true, append(base[:len(base):len(base)], more...)...)
			if said := h.outcome(); said != "reset" && !strings.HasPrefix(said, "4") {
				w.Errorf("%s: %s", name, said)
			}
		}
	}},
	{"F87", "S15: bytes in HTTP/2 that no request line has", atTheEdge + "{reason=Malformed}", func(w *platform) {
		for name, pseudo := range map[string][2]string{
			"a space in the query": {attackPath + "?x HTTP/1.0", "h"},
			"a quote in the query": {attackPath + "?\"", "h"},
			"a space in the host":  {attackPath, "h x"},
		} {
			h := w.newFrames(w.dial(w.calls))
			h.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", pseudo[1], ":path", pseudo[0])
			if said := h.outcome(); said != "400" {
				w.Errorf("%s: %s", name, said)
			}
		}
	}},
	{"F87", "S15: names of headers with other signs", "", sees(seen("GET", "", "Windlass.Caller: c", "X.Windlass.Caller: c", "X~Forwarded!For: d"),
		lacks("Windlass.caller", "X.windlass.caller", "X.Windlass.Caller", "X~forwarded!for", "X~Forwarded!For"))},
	{"F87", "S15: what only a proxy may say of its client", "", sees(seen("GET", "", "X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: "+marker,
		"X-Forwarded-Host: "+marker, "X-Forwarded-Port: 1", "Forwarded: for=203.0.113.9", "X-Real-Ip: 203.0.113.9", "X.Real.Ip: 203.0.113.9", "X-Original-Url: /admin"),
		func(w *platform, g *callwire.Call, h http.Header) {
			lacks("X-Forwarded-Port", "Forwarded", "X-Real-Ip", "X.Real.Ip", "X-Original-Url")(w, g, h)
			if h.Get("X-Forwarded-For") != "127.0.0.1" || h.Get("X-Forwarded-Proto") != "http" || h.Get("X-Forwarded-Host") != "h" {
				w.Errorf("the function sees %v", h)
			}
		})},
	{"F87", "two lengths in HTTP/2 of a body that is not there", "", func(w *platform) {
		h := w.newFrames(w.dial(w.calls))
		h.headers(1, true, ":method", "POST", ":scheme", "http", ":authority", "h", ":path", seenPath, "content-length", "1", "content-length", "2")
		if said := h.outcome(); said != "reset" && said != "200" && said != "400" {
			w.Errorf("answered %s", said)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, granted := range w.executed {
			for _, header := range granted.Header {
				if header.Name == "Content-Length" && header.Value != "0" {
					w.Errorf("the function sees a length of %s", header.Value)
				}
			}
		}
	}},
	{"F89", "HTTP/2 headers of 1 MiB", "", func(w *platform) {
		h := w.newFrames(w.dial(w.calls))
		_ = h.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h.encode(":method", "GET", ":scheme", "http", ":authority", "h", ":path", attackPath), EndStream: true})
		for n := range 128 {
			_ = h.framer.WriteContinuation(1, n == 127, h.encode("x-a", strings.Repeat(itoa(n), 4<<10)))
		}
		if said := h.outcome(); said != "reset" && said != "431" {
			w.Errorf("answered %s", said)
		}
	}},
	{"F79", "refusals for which there is no window", "", func(w *platform) {
		w.put(broken, time.Minute)
		h := w.newFrames(w.dial(w.calls), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		h.mannered()
		for id := uint32(1); id < 20; id += 2 {
			h.headers(id, true, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/function/broken.shop/")
		}
		w.until("they are refused", func() bool { return w.counter(answered+"{code=503}") >= 10 })
		// Others hear of theirs, though they are refused by the same goroutine.
		for range 10 {
			if r := w.raw(request("GET /function/broken.shop/", "", "")); r.status != 503 || !strings.Contains(r.body, "CannotStart") {
				w.Errorf("another client was answered %d %s", r.status, r.body)
			}
		}
	}},
	{"F79", "an answer for which there is no window", "", func(w *platform) {
		own := w.instanceOf(evil)
		pulls := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
		_ = pulls.Send(pull(1))
		h := w.newFrames(w.dial(w.calls), http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		h.headers(1, true, ":method", "GET", ":scheme", "http", ":authority", "h", ":path", "/function/evil.shop/")
		ticket, err := nextTicket(pulls)
		if err != nil {
			w.Fatal(err)
		}
		w.claims(ticket).send(whole(200, make([]byte, 60<<10)))
		// The call's time ends, and with it the wait.
		w.until("it is over", func() bool { return w.counter("windlass_gateway_invocations_in_flight{function="+evil+"}") == 0 })
		w.refusesClaim(ticket)
	}},
}

// mannered reads what comes and answers it, but grants no window, until the connection
// ends. It has a Framer of its own to write with, since a Framer is not for two.
func (h *rawFrames) mannered() {
	answers := http2.NewFramer(h.conn, nil)
	go func() {
		for {
			frame, err := h.framer.ReadFrame()
			if err != nil {
				return
			}
			switch f := frame.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					_ = answers.WriteSettingsAck()
				}
			case *http2.PingFrame:
				if !f.IsAck() {
					_ = answers.WritePing(true, f.Data)
				}
			}
		}
	}()
}

// outcome is how stream 1 ends: the status, or a reset of it or of all.
func (h *rawFrames) outcome() string {
	status := "reset"
	decoder := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":status" {
			status = f.Value
		}
	})
	for {
		frame, err := h.framer.ReadFrame()
		if isTimeout(err) {
			return "nothing"
		}
		if err != nil {
			return "reset"
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			_, _ = decoder.Write(f.HeaderBlockFragment())
			return status
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "reset"
		}
	}
}
