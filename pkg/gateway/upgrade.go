package gateway

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/internal/callwire"
)

// upgradeOf lists the protocols that a request asks to switch to; empty if it asks for none.
// HTTP/2 is none: clients that want it begin with it.
func upgradeOf(r *http.Request) string {
	if r.ProtoMajor != 1 || r.ProtoMinor < 1 || r.ContentLength != 0 || !httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade") {
		return ""
	}
	var wanted []string
	for protocol := range strings.SplitSeq(r.Header.Get("Upgrade"), ",") {
		if protocol = strings.TrimSpace(protocol); protocol != "" && !strings.EqualFold(protocol, "h2c") {
			wanted = append(wanted, protocol)
		}
	}
	return strings.Join(wanted, ", ")
}

// switchProtocols answers a client whose function switches to another protocol, and passes on
// what either side sends in it, until the function ends its side or the client is gone. Until
// then the call has its place at the instance, so the instance is not scaled away. What the client
// sends a moment longer is discarded.
func (g *Gateway) switchProtocols(c *call, head *callwire.Head, by *attempt) error {
	conn, buffered, err := c.client.rc.Hijack()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// The server's deadlines are not those of the new protocol.
	_ = conn.SetDeadline(by.runBy)
	if err := c.client.writeSwitch(conn, head); err != nil {
		return err
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer func() { _ = conn.Close() }() // ends the sending
	sending.Go(func() { g.sendSwitched(c, by, buffered.Reader) })
	body := c.answerBody()
	_, err = io.CopyBuffer(writerOnly{conn}, readerOnly{body}, make([]byte, bodyChunk))
	if err == nil {
		c.answerWritten(true)
		lingerSwitched(conn, &sending)
	}
	return err
}

// lingerSwitched ends the answer, and waits until the client has ended its half, too.
func lingerSwitched(conn net.Conn, sending *sync.WaitGroup) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = conn.SetReadDeadline(time.Now().Add(lingerTimeout))
		sending.Wait()
	}
}

// sendSwitched passes on what the client sends, and discards it once the function has ended. If the client
// is gone before that, the call is.
func (g *Gateway) sendSwitched(c *call, by *attempt, from *bufio.Reader) {
	if by.upload == nil {
		return
	}
	_, err := io.CopyBuffer(writerOnly{by.upload.out}, readerOnly{from}, make([]byte, bodyChunk))
	switch {
	case err == nil: // the client has ended its half
		by.endBody(io.EOF)
	case errors.Is(err, callwire.ErrBodyEnded):
		_, _ = io.Copy(io.Discard, from)
	default:
		by.endBody(err)
		g.clientLeft(c)
	}
}

// writerOnly and readerOnly hide the other methods, so that io.CopyBuffer uses the buffer.
type (
	writerOnly struct{ io.Writer }
	readerOnly struct{ io.Reader }
)

// writeSwitch writes the answer that switches protocols.
func (c *client) writeSwitch(conn net.Conn, head *callwire.Head) error {
	h := make(http.Header)
	c.functionHeaders(h, head)
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", head.Upgrade)
	var b strings.Builder
	b.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = h.Write(&b) // never fails
	b.WriteString("\r\n")
	_, err := io.WriteString(conn, b.String())
	return err
}
