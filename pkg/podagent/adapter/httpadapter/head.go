package httpadapter

import (
	"bytes"
	"fmt"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// answerHead is the head of an answer, as its message has it.
type answerHead struct {
	adapter.Head
	// The body ends with its last chunk if it is chunked, and otherwise after length bytes, or with the
	// connection if length is -1.
	chunked bool
	length  int64
	// closes says that the connection has no other answer after this one.
	closes bool
	// upgrade is the protocol that the function offers or switches to.
	upgrade string
}

// maxQuoted bounds what an error quotes of an answer, in bytes.
const maxQuoted = 80

// parseStatus reads the first line of an answer. minor is its version of HTTP/1.
func parseStatus(line []byte) (minor, status int, err error) {
	proto, rest, _ := bytes.Cut(line, []byte(" "))
	digit, isHTTP1 := bytes.CutPrefix(proto, []byte("HTTP/1."))
	if !isHTTP1 || len(digit) != 1 || digit[0] < '0' || digit[0] > '9' {
		return 0, 0, fmt.Errorf("it begins with %q", line[:min(len(line), maxQuoted)])
	}
	code, _, _ := bytes.Cut(bytes.TrimLeft(rest, " "), []byte(" "))
	if n, err := strconv.ParseUint(string(code), 10, 16); err == nil && len(code) == 3 {
		return int(digit[0] - '0'), int(n), nil
	}
	return 0, 0, fmt.Errorf("its status is %q", code[:min(len(code), maxQuoted)])
}

// parseHead reads the rest of the head of an answer to a request with a method:
//
//  1. The fields. Those about the connection and the body are kept apart.
//  2. What the connection's say: whether it ends, and which fields are its own.
//  3. What the body's say: where it ends (RFC 9112, 6.3).
func parseHead(minor, status int, text, method string) (answerHead, error) {
	f := framing{length: -1}
	fields, err := parseFields(text, &f)
	if err != nil {
		return answerHead{}, err
	}
	h := answerHead{Head: adapter.Head{Status: status, Header: fields}, upgrade: f.upgrade}
	connection := tokensOf(f.connection)
	// HTTP/1.0 has no encodings, so nobody knows where the body of such an answer ends (RFC 9112, 6.1).
	h.closes = connection["close"] || minor == 0 && (!connection["keep-alive"] || len(f.encodings) > 0)
	if len(connection) > 0 {
		h.Header = slices.DeleteFunc(h.Header, func(field invocation.Field) bool { return connection[strings.ToLower(field.Name)] })
	}
	chunked := minor > 0 && len(f.encodings) > 0
	if chunked {
		if len(f.encodings) > 1 || !isName(f.encodings[0], "chunked") {
			return answerHead{}, fmt.Errorf("its Transfer-Encoding is %q, want chunked", f.encodings)
		}
		if h.Trailer, err = f.announced(); err != nil {
			return answerHead{}, err
		}
	}
	// A function that sends the body of these answers may do so when the connection has the next call.
	mayFollow := chunked || f.length > 0
	switch {
	case method == http.MethodHead:
		h.ContentLength, h.closes = f.length, h.closes || mayFollow
	case status < 200 || status == http.StatusNoContent || status == http.StatusNotModified:
		h.closes = h.closes || mayFollow
	case chunked:
		h.chunked, h.ContentLength, h.length = true, -1, -1
	default:
		h.ContentLength, h.length = f.length, f.length
		h.closes = h.closes || f.length < 0
	}
	return h, nil
}

// folded is the end of a line whose value goes on in the next one (RFC 9112, 5.2).
var folded = regexp.MustCompile(`[ \t]*\r?\n[ \t]+`)

// parseFields reads fields up to an empty line. Those about a message itself go to f, if it is not nil.
func parseFields(text string, f *framing) (invocation.Fields, error) {
	if strings.Contains(text, "\n ") || strings.Contains(text, "\n\t") {
		text = folded.ReplaceAllString(text, " ")
	}
	fields := make(invocation.Fields, 0, strings.Count(text, "\n"))
	for {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		if line = strings.TrimSuffix(line, "\r"); line == "" {
			break
		}
		name, value, colon := strings.Cut(line, ":")
		if !colon || !httpguts.ValidHeaderFieldName(name) {
			return nil, fmt.Errorf("its line %q is no header", line[:min(len(line), maxQuoted)])
		}
		fields = append(fields, invocation.Field{Name: name, Value: strings.Trim(value, " \t")})
	}
	kept := fields[:0]
	for _, field := range fields {
		if !httpguts.ValidHeaderFieldValue(field.Value) {
			return nil, fmt.Errorf("the value of its header %q is not valid", field.Name)
		}
		if f == nil || !f.reads(field) {
			kept = append(kept, field)
		}
	}
	if f != nil {
		return kept, f.err
	}
	return kept, nil
}

// framing is what the fields of a head say about its connection and about its body.
type framing struct {
	connection, encodings, trailers []string
	upgrade                         string
	// length is Content-Length, -1 without one, digits its text, and err why it is not valid.
	length int64
	digits string
	err    error
}

// reads reads a field about the connection or the body, and reports whether it was one.
func (f *framing) reads(field invocation.Field) bool {
	switch {
	case isName(field.Name, "Content-Length"):
		n, err := strconv.ParseUint(field.Value, 10, 63)
		if err != nil || f.digits != "" && f.digits != field.Value {
			f.err = fmt.Errorf("its Content-Length is %q", field.Value)
		}
		f.length, f.digits = int64(n), field.Value
	case isName(field.Name, "Transfer-Encoding"):
		f.encodings = append(f.encodings, field.Value)
	case isName(field.Name, "Connection"):
		f.connection = append(f.connection, field.Value)
	case isName(field.Name, "Trailer"):
		f.trailers = append(f.trailers, field.Value)
	case isName(field.Name, "Upgrade"):
		if f.upgrade == "" {
			f.upgrade = field.Value
		}
	default:
		return isAnyOf(field.Name, hopByHop)
	}
	return true
}

// framingNames are the fields that say where a message ends, so no trailer may be one.
var framingNames = []string{"Content-Length", "Trailer", "Transfer-Encoding"}

// announced are the names of the announced trailers, sorted, but for those that may be none.
func (f *framing) announced() (names []string, err error) {
	for name := range strings.SplitSeq(strings.Join(f.trailers, ","), ",") {
		name = textproto.TrimString(name)
		switch {
		case isAnyOf(name, framingNames):
			return nil, fmt.Errorf("its Trailer is %q", f.trailers)
		case mayBeTrailer(name):
			names = append(names, http.CanonicalHeaderKey(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// mayBeTrailer reports whether a trailer may have a name.
func mayBeTrailer(name string) bool {
	return name != "" && httpguts.ValidTrailerHeader(name) && !isAnyOf(name, hopByHop)
}

// isName reports whether a is the name or token b, which is ASCII. EqualFold alone takes the Kelvin sign for a k.
func isName(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }

func isAnyOf(name string, names []string) bool {
	for _, one := range names {
		if isName(name, one) {
			return true
		}
	}
	return false
}

// tokensOf are the tokens in lists, in lower case; nil if there are none.
func tokensOf(lists []string) (tokens map[string]bool) {
	for _, list := range lists {
		for token := range strings.SplitSeq(list, ",") {
			token = textproto.TrimString(token)
			if !httpguts.ValidHeaderFieldName(token) {
				continue // such as the Kelvin sign, which has k as its lower case
			}
			if tokens == nil {
				tokens = make(map[string]bool)
			}
			tokens[strings.ToLower(token)] = true
		}
	}
	return tokens
}
