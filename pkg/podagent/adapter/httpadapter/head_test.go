package httpadapter

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// heads are heads of answers, good and bad.
var heads = []string{
	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\nDate: now\r\n\r\n",
	"HTTP/1.1 200\nX-A:1\n\n",
	"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nTransfer-Encoding: gzip\r\n\r\n",
	"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\nContent-Length: 7\r\nTrailer: x-b, X-A,\r\nTrailer: X-B\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chun\u212Aed\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-A, content-length\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: trailer\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Transfer-Encoding\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTrailer: Content-Length\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.0 200 OK\r\nConnection: \u212Aeep-Alive\r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nConnection: close, X-Hop\r\nConnection: x-other\r\nX-Hop: 1\r\nX-Other: 2\r\nX-A: 3\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-Folded: a\r\n  b \r\n\tc\r\n \r\nContent-Length: 0\r\n\r\n",
	"HTTP/1.1 200 OK\r\n X-Folded: a\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-Folded\r\n : a\r\nX-A: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 01\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX A: 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-A: \x00\r\n\r\n",
	"HTTP/1.1 200 OK\r\nX-A\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\n\r\n",
	"HTTP/1.1 +20 OK\r\n\r\n",
	"HTTP/1.1  200 OK\r\n\r\n",
	"HTTP/2.0 200 OK\r\n\r\n",
	"\r\n",
}

// FuzzHead reads heads as net/http does. Only a name with a space is taken by net/http alone, and only
// net/http keeps a connection on which a body may follow.
func FuzzHead(f *testing.F) {
	for _, head := range heads {
		f.Add(head, false)
		f.Add(head, true)
	}
	f.Fuzz(func(t *testing.T, text string, isHead bool) {
		method := http.MethodGet
		if isHead {
			method = http.MethodHead
		}
		got, err := readOne(text, method)
		want, wantErr := http.ReadResponse(bufio.NewReader(strings.NewReader(text)), &http.Request{Method: method})
		if wantErr == nil && want.StatusCode < 100 {
			return // neither knows such an answer
		}
		if wantErr != nil || want.ProtoMajor != 1 {
			if err == nil {
				t.Errorf("%q was taken, and net/http says %v", text, wantErr)
			}
			return
		}
		if err != nil {
			if !isStricter(want) {
				t.Errorf("%q was not taken: %v", text, err)
			}
			return
		}
		// Of an answer that closes its connection, net/http has removed the header Connection.
		_, fields, _ := strings.Cut(text, "\n")
		all, _ := textproto.NewReader(bufio.NewReader(strings.NewReader(fields))).ReadMIMEHeader()
		if bodyMayFollow(want, all, isHead) {
			want.Close = true
		}
		if want.StatusCode != got.Status || want.ContentLength != got.ContentLength || want.Close != got.closes {
			t.Errorf("%q has status %d, length %d, closes %v; net/http says %d, %d, %v", text,
				got.Status, got.ContentLength, got.closes, want.StatusCode, want.ContentLength, want.Close)
		}
		if chunked := len(want.TransferEncoding) > 0 && want.Body != http.NoBody; chunked != got.chunked {
			t.Errorf("%q is in chunks: %v, net/http says %v", text, got.chunked, chunked)
		}
		for name := range want.Header {
			if isAnyOf(name, hopByHop) || name == "Content-Length" || tokensOf(all["Connection"])[strings.ToLower(name)] {
				delete(want.Header, name)
			}
		}
		if want.Header.Get("Pragma") == "no-cache" && got.Header.Get("Cache-Control") == "" {
			delete(want.Header, "Cache-Control") // which net/http makes up
		}
		if diff := cmp.Diff(want.Header, adapter.HeaderOf(got.Header), cmpopts.EquateEmpty(), cmp.Transformer("end", strings.TrimSpace)); diff != "" {
			t.Errorf("%q has the headers (-net/http +got)\n%s", text, diff)
		}
	})
}

// readOne reads the head of an answer.
func readOne(text, method string) (answerHead, error) {
	c := &conn{in: bufio.NewReaderSize(strings.NewReader(text), 16)}
	return c.readHead(method)
}

// bodyMayFollow reports whether an answer without a body announces one, or has an encoding in HTTP/1.0.
func bodyMayFollow(a *http.Response, all textproto.MIMEHeader, isHead bool) bool {
	encoded := len(all["Transfer-Encoding"]) > 0
	length, err := strconv.ParseUint(all.Get("Content-Length"), 10, 63)
	announced := encoded || err == nil && length > 0
	bodyless := isHead || a.StatusCode < 200 || a.StatusCode == http.StatusNoContent || a.StatusCode == http.StatusNotModified
	return a.ProtoMinor == 0 && encoded || bodyless && announced
}

// isStricter reports whether this side refuses an answer that net/http takes.
func isStricter(a *http.Response) bool {
	for name := range a.Header {
		if strings.Contains(name, " ") {
			return true
		}
	}
	return false
}

func TestWhatDoesNotBeginAsHTTPIsRefusedAtItsFirstLine(t *testing.T) {
	in, out := io.Pipe()
	defer out.Close()
	go func() { _, _ = io.WriteString(out, "220 mail.example ESMTP\r\n") }()
	c := &conn{in: bufio.NewReader(in)}
	if _, err := c.readHead(http.MethodGet); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestHeadSaysWhatItsConnectionOffers(t *testing.T) {
	h, err := readOne("HTTP/1.1 101 Switching\r\nupgrade: tea\r\nConnection: Upgrade\r\nX-A: 1\r\n\r\n", http.MethodGet)
	want := answerHead{Head: adapter.Head{Status: 101, Header: invocation.Fields{{Name: "X-A", Value: "1"}}}, upgrade: "tea"}
	if diff := cmp.Diff(want, h, cmp.AllowUnexported(answerHead{})); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	h, err = readOne(heads[3], http.MethodGet)
	if !slices.Equal(h.Trailer, []string{"X-A", "X-B"}) || err != nil {
		t.Errorf("trailers %q, %v", h.Trailer, err)
	}
}
