package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// The carrier's own header, in both directions. A relay takes it out before the other side sees it.
const carrierHeader = "Windlass-Carrier"

var (
	errHead = errors.New("the head is not one that a relay can pass on")
	errBody = errors.New("the chunks of the body are not valid")
)

// message is what a relay must know of a head: where the message ends, and what concerns the
// carrier.
type message struct {
	// status is 0 for a request. method is that of a request.
	status int
	method string
	// length is Content-Length, and -1 without one. A chunked message has none.
	length  int64
	chunked bool
	// closing says that the connection ends after the message, and switching that another
	// protocol follows.
	closing, switching bool
	// own is the value of the carrier's header, valid as long as the head's bytes.
	own []byte
}

// body is how the body of the message ends. For an answer, asked is the method of its request.
func (m message) body(asked string) body {
	switch {
	case m.status > 0 && (asked == http.MethodHead || m.status < 200 || m.status == http.StatusNoContent || m.status == http.StatusNotModified):
		return body{}
	case m.chunked:
		return body{chunked: true}
	case m.length >= 0:
		return body{left: m.length}
	case m.status == 0:
		return body{}
	}
	return body{left: math.MaxInt64, untilClose: true}
}

// headLen is the length of the head at the beginning of b, with its empty line; 0 if it is not
// whole.
func headLen(b []byte) int {
	if at := bytes.Index(b, []byte("\r\n\r\n")); at >= 0 {
		return at + 4
	}
	return 0
}

// relayHead appends a whole head to out without what concerns one connection only, and with own,
// a line of the carrier or nothing, behind its first line. It refuses all that two readers might
// read in two ways.
func relayHead(out, head, own []byte) ([]byte, message, error) {
	m := message{length: -1}
	first, rest, err := cutLine(head)
	if err == nil {
		err = m.readFirst(first)
	}
	if err != nil {
		return out, m, err
	}
	out = append(append(append(out, first...), '\r', '\n'), own...)
	for {
		line, after, err := cutLine(rest)
		if err != nil {
			return out, m, err
		}
		if rest = after; len(line) == 0 {
			break
		}
		passes, err := m.readField(line)
		if err != nil {
			return out, m, err
		}
		if passes {
			out = append(append(out, line...), '\r', '\n')
		}
	}
	return append(out, '\r', '\n'), m, m.framed(rest)
}

// cutLine cuts off the first line, which ends with CR and LF and has neither elsewhere.
func cutLine(b []byte) (line, rest []byte, err error) {
	line, rest, found := bytes.Cut(b, []byte{'\n'})
	n := len(line) - 1
	if !found || n < 0 || line[n] != '\r' || bytes.IndexByte(line[:n], '\r') >= 0 || bytes.IndexByte(line, 0) >= 0 {
		return nil, nil, fmt.Errorf("%w: a line does not end as it must", errHead)
	}
	return line[:n], rest, nil
}

// readFirst reads a request line or a status line.
func (m *message) readFirst(line []byte) error {
	if rest, answers := bytes.CutPrefix(line, []byte("HTTP/1.")); answers {
		if len(rest) < 5 || rest[0] != '0' && rest[0] != '1' || rest[1] != ' ' || len(rest) > 5 && rest[5] != ' ' {
			return fmt.Errorf("%w: the line %.40q", errHead, line)
		}
		status, ok := number(rest[2:5])
		if !ok || status < 100 || status > 599 {
			return fmt.Errorf("%w: the status %q", errHead, rest[2:5])
		}
		m.status, m.closing, m.switching = int(status), rest[0] == '0', status == http.StatusSwitchingProtocols
		return nil
	}
	words := bytes.Split(line, []byte{' '})
	if len(words) != 3 || !isToken(words[0]) || len(words[1]) == 0 || string(words[2]) != "HTTP/1.1" {
		return fmt.Errorf("%w: the line %.40q", errHead, line)
	}
	m.method = methodOf(words[0])
	return nil
}

// methodOf is the name of a method, without an allocation for the usual ones.
func methodOf(name []byte) string {
	switch string(name) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodPost:
		return http.MethodPost
	case http.MethodHead:
		return http.MethodHead
	}
	return string(name)
}

// readField reads a field, and reports whether it is for the other side, too.
func (m *message) readField(line []byte) (passes bool, err error) {
	name, value, found := bytes.Cut(line, []byte{':'})
	if !found || !isToken(name) {
		return false, fmt.Errorf("%w: the field %.40q", errHead, line)
	}
	value = bytes.Trim(value, " \t")
	switch {
	case isNamed(name, "Content-Length"):
		n, ok := number(value)
		if !ok || m.length >= 0 {
			return false, fmt.Errorf("%w: the length %.40q", errHead, value)
		}
		m.length = n
	case isNamed(name, "Transfer-Encoding"):
		if m.chunked || !isNamed(value, "chunked") {
			return false, fmt.Errorf("%w: the encoding %.40q", errHead, value)
		}
		m.chunked = true
	case isNamed(name, "Connection"):
		m.closing = m.closing || isNamed(value, "close")
		return false, nil
	case isNamed(name, "Keep-Alive"), isNamed(name, "Proxy-Connection"):
		return false, nil
	case isNamed(name, carrierHeader):
		if m.own != nil {
			return false, fmt.Errorf("%w: the carrier's header is there twice", errHead)
		}
		m.own = value
		return false, nil
	}
	return true, nil
}

func isNamed(name []byte, want string) bool {
	return len(name) == len(want) && bytes.EqualFold(name, []byte(want))
}

// number reads decimal digits and nothing else.
func number(digits []byte) (int64, bool) {
	if len(digits) == 0 || len(digits) > 18 {
		return 0, false
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// isToken reports whether all of b may be in the name of a field.
func isToken(b []byte) bool {
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), c) >= 0 {
			return false
		}
	}
	return len(b) > 0
}

// Bounds of what is between chunks.
const (
	mostOfLine     = 4 << 10
	mostOfTrailers = 16 << 10
)

// body walks over a body to its end, and looks at no more than it must.
type body struct {
	// left are the bytes of a body of known length, or of the chunk.
	left       int64
	chunked    bool
	untilClose bool

	at     place
	digits int
	// lineLen is the length of the line that is read, and between that of all trailers.
	lineLen, between int
	over             bool
}

// place is where in a chunked body the walk is.
type place int

const (
	atSize place = iota // also at its extension
	atExtension
	atSizeEnd
	atData
	atDataCR
	atDataLF
	atTrailer
	atTrailerLF
)

// pass says how many bytes of p are of the body, and whether it ends with them.
func (b *body) pass(p []byte) (n int, done bool, err error) {
	if !b.chunked {
		n = int(min(b.left, int64(len(p))))
		if !b.untilClose {
			b.left -= int64(n)
		}
		return n, b.left == 0, nil
	}
	for n < len(p) && !b.over {
		if b.at == atData {
			part := int(min(b.left, int64(len(p)-n)))
			n += part
			if b.left -= int64(part); b.left == 0 {
				b.at = atDataCR
			}
			continue
		}
		if err := b.passByte(p[n]); err != nil {
			return n, false, err
		}
		n++
	}
	return n, b.over, nil
}

// passByte passes a byte that is not data.
func (b *body) passByte(c byte) error {
	b.lineLen++
	switch {
	case b.lineLen > mostOfLine, c == '\n' && b.at != atSizeEnd && b.at != atDataLF && b.at != atTrailerLF:
		return errBody
	case b.at == atSize && isHex(c):
		if b.digits++; b.digits > 15 {
			return errBody
		}
		b.left = b.left<<4 | hexValue(c)
	case b.at == atSize && c == ';' && b.digits > 0:
		b.at = atExtension
	case b.at == atSize && c == '\r' && b.digits > 0, b.at == atExtension && c == '\r':
		b.at = atSizeEnd
	case b.at == atExtension:
	case b.at == atSizeEnd && c == '\n':
		b.endSize()
	case b.at == atDataCR && c == '\r':
		b.at = atDataLF
	case b.at == atDataLF && c == '\n':
		b.at, b.digits, b.lineLen = atSize, 0, 0
	case b.at == atTrailer && c == '\r':
		b.at = atTrailerLF
	case b.at == atTrailer:
	case b.at == atTrailerLF && c == '\n':
		// Without a byte but the line's end, it is the last line.
		if b.between += b.lineLen; b.between > mostOfTrailers {
			return errBody
		}
		b.over, b.at, b.lineLen = b.lineLen == 2, atTrailer, 0
	default:
		return errBody
	}
	return nil
}

// endSize ends the line with the size of a chunk.
func (b *body) endSize() {
	b.at, b.lineLen = atData, 0
	if b.left == 0 {
		b.at = atTrailer
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func hexValue(c byte) int64 {
	switch {
	case c <= '9':
		return int64(c - '0')
	case c <= 'F':
		return int64(c-'A') + 10
	}
	return int64(c-'a') + 10
}

// mark is the value of the carrier's header.
//
// A request has the number of the call in its place, the attempt and the nanoseconds that are
// left to it; an answer the number, whether the place stays with the gateway (1 or 0), and the
// nanoseconds until the function got the call and since.
type mark [4]int64

// appendMark appends the line.
func appendMark(b []byte, m mark) []byte {
	b = append(b, carrierHeader+":"...)
	for _, n := range m {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return append(b, '\r', '\n')
}

// parseMark reads the value.
func parseMark(value []byte) (m mark, err error) {
	rest := value
	for i := range m {
		var word []byte
		var ok bool
		word, rest, _ = bytes.Cut(rest, []byte{' '})
		if m[i], ok = number(word); !ok {
			return m, fmt.Errorf("%w: the carrier's header is %.60q", errHead, value)
		}
	}
	if len(rest) > 0 {
		return m, fmt.Errorf("%w: the carrier's header is %.60q", errHead, value)
	}
	return m, nil
}

// readFields reads the head of an answer for one who wants its end-to-end headers, by their
// canonical names. Their text is one string.
func readFields(head []byte, keep func(name, value string)) (message, error) {
	m := message{length: -1}
	first, rest, err := cutLine(head)
	if err == nil {
		err = m.readFirst(first)
	}
	if err == nil && m.status == 0 {
		err = errHead
	}
	if err != nil {
		return m, err
	}
	for text := string(rest); ; text = text[len(text)-len(rest):] {
		line, after, err := cutLine(rest)
		if err != nil {
			return m, err
		}
		if rest = after; len(line) == 0 {
			break
		}
		passes, err := m.readField(line)
		if err != nil {
			return m, err
		}
		if passes {
			name, value, _ := strings.Cut(text[:len(line)], ":")
			keep(http.CanonicalHeaderKey(name), strings.Trim(value, " \t"))
		}
	}
	return m, m.framed(rest)
}

// framed is an error if bytes follow a head's empty line, or it says in two ways where the message
// ends.
func (m *message) framed(rest []byte) error {
	if len(rest) > 0 || m.chunked && m.length >= 0 {
		return fmt.Errorf("%w: it says in two ways where it ends", errHead)
	}
	return nil
}
