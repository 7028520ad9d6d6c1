package loadgen

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestAnswersAreReadToTheirEnd(t *testing.T) {
	const next = "HTTP/1.1 200 next"
	for name, c := range map[string]struct {
		answer string
		status int
		err    error
	}{
		"with a length":       {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, nil},
		"in any case":         {"HTTP/1.1 200 OK\r\ncontent-length:3\r\n\r\nabc", 200, nil},
		"empty":               {"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", 500, nil},
		"chunked":             {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 200, nil},
		"with trailers":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nDigest: x\r\n\r\n", 200, nil},
		"without a body":      {"HTTP/1.1 204 No Content\r\n\r\n", 204, nil},
		"informed before":     {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", 200, nil},
		"before it closes":    {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\na", 200, ErrClosing},
		"of another protocol": {"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\n\r\n", 101, ErrClosing},
	} {
		from := bufio.NewReader(strings.NewReader(c.answer + next))
		status, _, err := readAnswer(from)
		if status != c.status || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", name, status, err, c.status, c.err)
		}
		if rest, _ := io.ReadAll(from); string(rest) != next {
			t.Errorf("%s: the next answer begins with %q", name, rest)
		}
	}
}

func TestAnswersThatBreakOffOrAreNoneAreErrors(t *testing.T) {
	for _, answer := range []string{
		"", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab", "220 mail ESMTP\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
	} {
		if status, _, err := readAnswer(bufio.NewReader(strings.NewReader(answer))); err == nil || errors.Is(err, ErrClosing) {
			t.Errorf("%q is answer %d, %v", answer, status, err)
		}
	}
}

// Whatever net/http reads as a whole answer, a Conn reads with the same status and the same end.
func FuzzAnswers(f *testing.F) {
	f.Add("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 ")
	f.Add("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\nrest")
	f.Fuzz(func(t *testing.T, text string) {
		reference := bufio.NewReader(strings.NewReader(text))
		answer, err := http.ReadResponse(reference, nil)
		if err != nil || answer.StatusCode < 200 || answer.ContentLength < 0 && len(answer.TransferEncoding) == 0 {
			_, _, _ = readAnswer(bufio.NewReader(strings.NewReader(text)))
			return
		}
		if _, err := io.Copy(io.Discard, answer.Body); err != nil {
			_, _, _ = readAnswer(bufio.NewReader(strings.NewReader(text)))
			return
		}
		want, _ := io.ReadAll(reference)
		from := bufio.NewReader(strings.NewReader(text))
		status, _, err := readAnswer(from)
		if err != nil && !errors.Is(err, ErrClosing) {
			// It is the stricter one, about lines of any length and about odd white space.
			return
		}
		got, _ := io.ReadAll(from)
		if status != answer.StatusCode || string(got) != string(want) {
			t.Errorf("%q: status %d and rest %q, want %d and %q", text, status, got, answer.StatusCode, want)
		}
	})
}
