package loadgen

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"time"
)

// Message is an HTTP/1.1 request that is sent many times.
type Message struct {
	head []byte
	body int64
}

// NewMessage is a request for a path, which begins with a slash, on a host. With a body of more
// than 0 bytes it is a POST of that many zeros, otherwise a GET.
func NewMessage(host, path string, body int64) Message {
	method, length := http.MethodGet, ""
	if body > 0 {
		method, length = http.MethodPost, "Content-Length: "+strconv.FormatInt(body, 10)+"\r\n"
	}
	head := method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nUser-Agent: windlass-bench\r\nAccept: */*\r\n" + length + "\r\n"
	return Message{[]byte(head), body}
}

// Conn is a connection that takes little CPU time: it reuses its buffers, and looks only at
// those headers of an answer that say where it ends. It is for one goroutine.
type Conn struct {
	conn net.Conn
	from *bufio.Reader
	// mostRunning is the largest number that an answer had in RunningHeader.
	mostRunning int
}

// RunningHeader is the header by which a function says how many calls it has run at a time at most,
// if it counts them.
const RunningHeader = "Bench-Most-Running"

// connBuffer is the bytes that a connection reads at once.
const connBuffer = 16 << 10

// Dial connects to host:port, until the deadline.
func Dial(ctx context.Context, addr string, deadline time.Time) (*Conn, error) {
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &Conn{conn: conn, from: bufio.NewReaderSize(conn, connBuffer)}, nil
}

// Close closes the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// ErrClosing is the error of a whole answer after which the server closes the connection.
var ErrClosing = errors.New("the server closes the connection")

// Do sends a request and reads the answer to its end, until the deadline. After an error the
// connection must be closed; with ErrClosing the status counts all the same.
func (c *Conn) Do(m Message, deadline time.Time) (status int, err error) {
	if err := c.conn.SetDeadline(deadline); err != nil {
		return 0, err
	}
	if err := c.send(m); err != nil {
		return 0, err
	}
	status, f, err := readAnswer(c.from)
	c.mostRunning = max(c.mostRunning, f.running)
	return status, err
}

var zeros [64 << 10]byte

func (c *Conn) send(m Message) error {
	if m.body <= connBuffer {
		// One packet, as any client sends it.
		_, err := c.conn.Write(append(m.head[:len(m.head):len(m.head)], zeros[:m.body]...))
		return err
	}
	if _, err := c.conn.Write(m.head); err != nil {
		return err
	}
	for left := m.body; left > 0; {
		n, err := c.conn.Write(zeros[:min(left, int64(len(zeros)))])
		if err != nil {
			return err
		}
		left -= int64(n)
	}
	return nil
}

// readAnswer reads the answer to a request that is no HEAD, without what is informational.
func readAnswer(from *bufio.Reader) (status int, f framing, err error) {
	for status < 200 && status != http.StatusSwitchingProtocols {
		if status, err = readStatus(from); err != nil {
			return 0, f, err
		}
		if f, err = readHeader(from); err != nil {
			return 0, f, err
		}
	}
	switch {
	case status == http.StatusSwitchingProtocols:
		return status, f, ErrClosing
	case status == http.StatusNoContent || status == http.StatusNotModified:
	case f.chunked:
		if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(from)); err != nil {
			return 0, f, err
		}
		// Trailers are framed as headers are.
		if _, err := readHeader(from); err != nil {
			return 0, f, err
		}
	case f.length >= 0:
		if err := discard(from, f.length); err != nil {
			return 0, f, err
		}
	default:
		if _, err := io.Copy(io.Discard, from); err != nil {
			return 0, f, err
		}
		f.closing = true
	}
	if f.closing {
		return status, f, ErrClosing
	}
	return status, f, nil
}

// framing is what is read of an answer's headers: where it ends, and RunningHeader. A length of -1
// is unknown.
type framing struct {
	length           int64
	chunked, closing bool
	running          int
}

func readStatus(from *bufio.Reader) (int, error) {
	line, err := readLine(from)
	if err != nil {
		return 0, err
	}
	if len(line) < len("HTTP/1.1 200") || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return 0, fmt.Errorf("%.40q is no status line", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 {
		return 0, fmt.Errorf("%.40q is no status line", line)
	}
	return status, nil
}

func readHeader(from *bufio.Reader) (framing, error) {
	f := framing{length: -1}
	for {
		line, err := readLine(from)
		if err != nil || len(line) == 0 {
			return f, err
		}
		name, value, found := bytes.Cut(line, []byte{':'})
		if !found {
			return f, fmt.Errorf("%.40q is no header", line)
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if f.length, err = strconv.ParseInt(string(value), 10, 64); err != nil || f.length < 0 {
				return f, fmt.Errorf("a Content-Length is %.40q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			f.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Connection")):
			f.closing = bytes.EqualFold(value, []byte("close"))
		case bytes.EqualFold(name, []byte(RunningHeader)):
			if f.running, err = strconv.Atoi(string(value)); err != nil {
				return f, fmt.Errorf("%s is %.40q", RunningHeader, value)
			}
		}
	}
}

// readLine reads a line of at most connBuffer bytes, which is valid until the next read.
func readLine(from *bufio.Reader) ([]byte, error) {
	line, err := from.ReadSlice('\n')
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimRight(line, "\r\n"), nil
}

func discard(from *bufio.Reader, n int64) error {
	for n > 0 {
		read, err := from.Discard(int(min(n, connBuffer)))
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		n -= int64(read)
	}
	return nil
}
