package attacks

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/internal/callwire"
)

// response is what a client was told.
type response struct {
	status int
	header http.Header
	body   string
	err    error
}

func (w *platform) discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// call calls a function by GET.
func (w *platform) call(path string) response { return w.callWith(context.Background(), path) }

func (w *platform) callWith(ctx context.Context, path string) response {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.calls+path, nil)
	if err != nil {
		return response{err: err}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(body), err}
}

func (w *platform) dial(addr string) net.Conn {
	w.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// raw sends text to the gateway and reads one answer. Who sends much may be
// answered, and cut off, before all was sent.
func (w *platform) raw(text string) response {
	w.Helper()
	return w.rawTo(w.calls, text)
}

func (w *platform) rawTo(addr, text string) response {
	w.Helper()
	conn := w.dial(addr)
	go func() { _, _ = io.WriteString(conn, text) }()
	return readResponse(bufio.NewReader(conn))
}

func readResponse(r *bufio.Reader) response {
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		return response{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(body), err}
}

// refuses sends text, which must be refused with one of these codes, and the answer
// must say that nothing ran. A code of 0 stands for a connection that is ended.
func refuses(text string, want ...int) func(*platform) {
	return func(w *platform) {
		r := w.raw(text)
		if isTimeout(r.err) {
			w.Errorf("%.60q: not answered", text)
		}
		for _, code := range want {
			if r.status == code && (code == 0 || r.header.Get("Windlass-Executed") == "no") {
				return
			}
		}
		w.Errorf("%.200q\nis answered with %d, want %v; %v; %.200s", text, r.status, want, r.header, r.body)
	}
}

// sees sends text and checks what the honest function is given.
func sees(text string, check func(w *platform, g *callwire.Call, header http.Header)) func(*platform) {
	return func(w *platform) {
		w.mu.Lock()
		before := len(w.executed)
		w.mu.Unlock()
		if r := w.raw(text); r.status != http.StatusOK {
			w.Fatalf("answered %d: %v %s", r.status, r.err, r.body)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.executed) != before+1 {
			w.Fatalf("%d calls came of it", len(w.executed)-before)
		}
		granted := w.executed[before]
		header := make(http.Header)
		for _, h := range granted.Header {
			header.Add(h.Name, h.Value)
		}
		check(w, &granted, header)
	}
}

// request is a request to the honest function, with lines of headers and a body.
func request(start string, rest ...string) string {
	return start + " HTTP/1.1\r\nHost: h\r\n" + strings.Join(rest, "\r\n")
}

const attackPath = "/function/honest.shop/attack"

// get and post are requests with lines of headers.
func get(headers ...string) string {
	return request("GET "+attackPath, append(headers, "", "")...)
}

func post(body string, headers ...string) string {
	return request("POST "+attackPath, append(headers, "", body)...)
}
