package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/rawtcp"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// pullProtocol is what an agent asks to switch to. From then on the gateway sends requests, one at
// a time, and the agent answers.
const pullProtocol = "windlass-pull/1"

// readBuffer holds the head of a message as a whole.
const readBuffer = 16 << 10

// httpGateway hands calls to agents as HTTP/1.1 requests, on connections that the agents have
// dialled. Nobody reads an idle connection: the goroutine of a call looks whether it is quiet,
// writes the request and reads the answer.
type httpGateway struct{ places places[*httpPlace] }

// httpPlace is an agent's connection, which is its only place. One call has it at a time.
type httpPlace struct {
	conn   net.Conn
	in     *bufio.Reader
	out    []byte
	number int64
	// wasIdle says that the agent may have closed the connection, or taken it back, meanwhile.
	wasIdle bool
	cut     func()
	ended   chan struct{}
}

func newHTTPPlace(c net.Conn) *httpPlace {
	p := &httpPlace{conn: rawtcp.Wrap(c), ended: make(chan struct{})}
	p.in = bufio.NewReaderSize(p.conn, readBuffer)
	p.cut = func() { _ = p.conn.Close() }
	return p
}

// httpCall is a call at the gateway.
type httpCall struct {
	// line is the request's first line, and rest what follows the carrier's own.
	line, rest []byte
	method     string
	sent       chan *httpPlace
}

// sendTo implements sender. The goroutine that frees a place writes the next request, so that the
// instance does not wait for the goroutine of that call.
func (c *httpCall) sendTo(p *httpPlace) bool {
	if p.wasIdle && !rawtcp.IsQuiet(p.conn) {
		p.lose()
		return false
	}
	p.number++
	p.out = append(p.out[:0], c.line...)
	p.out = appendMark(p.out, mark{p.number, 1, int64(callTime)})
	p.out = append(p.out, c.rest...)
	_ = p.conn.SetDeadline(time.Now().Add(callTime + callGrace))
	if _, err := p.conn.Write(p.out); err != nil {
		p.cut() // reading the answer fails
	}
	c.sent <- p
	return true
}

// lose ends a place for good.
func (p *httpPlace) lose() {
	p.cut()
	close(p.ended)
}

// newHTTPCall makes the request of a call, but for what only its place knows.
func newHTTPCall(r *http.Request, body []byte) *httpCall {
	c := &httpCall{method: r.Method, sent: make(chan *httpPlace, 1)}
	b := make([]byte, 0, 1<<10+len(body))
	b = append(append(append(b, r.Method...), ' '), r.RequestURI...)
	b = append(b, " HTTP/1.1\r\n"...)
	c.line = b
	b = appendLine(b, "Host", r.Host)
	if len(body) > 0 || r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), int64(len(body)), 10), '\r', '\n')
	}
	passing(r, invocation.NewID(time.Now()), func(name, value string) {
		if name != "Content-Length" {
			b = appendLine(b, name, value)
		}
	})
	c.rest = append(append(b, '\r', '\n'), body...)[len(c.line):]
	return c
}

func appendLine(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(append(b, value...), '\r', '\n')
}

// ServeHTTP implements http.Handler.
func (g *httpGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := wholeBody(r)
	if err != nil {
		unanswered(w, err)
		return
	}
	c, ctx := newHTTPCall(r, body), r.Context()
	g.places.serve(c)
	var p *httpPlace
	select {
	case p = <-c.sent:
	case <-ctx.Done():
		if g.places.leave(c) {
			return
		}
		p = <-c.sent
	}
	// To close the connection is the only way to cancel a call.
	stop := context.AfterFunc(ctx, p.cut)
	err = g.answer(w, c, p, stop)
	if err != nil {
		stop()
		p.lose()
		unanswered(w, err)
	}
}

// answer passes the answer on. Without an error the place is given or lost.
func (g *httpGateway) answer(w http.ResponseWriter, c *httpCall, p *httpPlace, stop func() bool) error {
	m, err := p.readHead(w.Header())
	if err != nil {
		return err
	}
	own, err := parseMark(m.own)
	if err != nil || own[0] != p.number {
		return errors.Join(fmt.Errorf("%w: it answers the call %d, want %d", errHead, own[0], p.number), err)
	}
	ends := m.body(c.method)
	if !ends.chunked && ends.left <= int64(p.in.Buffered()) {
		// The whole answer is here: the place is free before the client has it.
		whole, _ := p.in.Peek(int(ends.left))
		body := append([]byte(nil), whole...)
		_, _ = p.in.Discard(len(whole))
		g.vacate(p, m, own, stop)
		w.WriteHeader(m.status)
		_, _ = w.Write(body)
		return nil
	}
	w.WriteHeader(m.status)
	if err := p.stream(w, ends); err != nil {
		stop()
		p.lose()
		panic(http.ErrAbortHandler)
	}
	g.vacate(p, m, own, stop)
	return nil
}

// vacate gives a place to the next call, unless the agent wants it back.
func (g *httpGateway) vacate(p *httpPlace, m message, own mark, stop func() bool) {
	if !stop() || m.closing || own[1] == 0 || p.in.Buffered() > 0 {
		p.lose()
		return
	}
	p.wasIdle = false
	g.places.give(p)
}

// stream copies a body as it comes.
func (p *httpPlace) stream(w io.Writer, ends body) (err error) {
	switch {
	case ends.chunked:
		_, err = io.Copy(w, httputil.NewChunkedReader(p.in))
		// Trailers are left out.
		for line := []byte("-"); err == nil && len(line) > 2; {
			line, err = p.in.ReadSlice('\n')
		}
	case ends.untilClose:
		_, err = io.Copy(w, p.in)
	default:
		_, err = io.CopyN(w, p.in, ends.left)
	}
	return err
}

// readHead reads the head of an answer, behind interim ones, and adds its fields to a header.
func (p *httpPlace) readHead(to http.Header) (message, error) {
	for {
		head, err := awaitHead(p.in)
		if err != nil {
			return message{}, err
		}
		m, err := readAnswer(head, to)
		if err != nil {
			return m, err
		}
		_, _ = p.in.Discard(len(head))
		if m.status >= http.StatusOK {
			return m, nil
		}
		clear(to)
	}
}

// awaitHead returns a whole head, which stays in the buffer.
func awaitHead(in *bufio.Reader) ([]byte, error) {
	if _, err := in.Peek(1); err != nil {
		return nil, err
	}
	for {
		b, _ := in.Peek(in.Buffered())
		if n := headLen(b); n > 0 {
			return b[:n], nil
		}
		if _, err := in.Peek(len(b) + 1); err != nil {
			return nil, fmt.Errorf("%w: %w", errHead, err)
		}
	}
}

// readAnswer reads the head of an answer. Its values are one piece of memory, as those of a frame
// are.
func readAnswer(head []byte, to http.Header) (message, error) {
	values := make([]string, 0, 16)
	return readFields(head, func(name, value string) {
		if before := to[name]; before != nil {
			to[name] = append(before, value)
			return
		}
		values = append(values, value)
		to[name] = values[len(values)-1 : len(values) : len(values)]
	})
}

// serveAgent takes a connection that is a place, and returns when it is none any more.
func (g *httpGateway) serveAgent(c net.Conn) error {
	callwire.NoticeDeadPeer(c)
	p := newHTTPPlace(c)
	_ = p.conn.SetDeadline(time.Now().Add(helloWithin))
	hello, err := http.ReadRequest(p.in)
	if err != nil {
		return err
	}
	if hello.Header.Get("Upgrade") != pullProtocol {
		return fmt.Errorf("an agent wants to speak %q", hello.Header.Get("Upgrade"))
	}
	if _, err := io.WriteString(p.conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+pullProtocol+"\r\n\r\n"); err != nil {
		return err
	}
	_ = p.conn.SetDeadline(time.Time{})
	p.wasIdle = true
	g.places.give(p)
	<-p.ended
	return nil
}
