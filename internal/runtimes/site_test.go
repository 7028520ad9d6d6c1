package runtimes

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

func listenOn(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// site is a shim that serves HTTP.
type site struct {
	*shim
	address string
	client  *http.Client
}

// startSite starts a shim with the protocol HTTP and waits until it listens.
func startSite(t *testing.T, runtime v1alpha1.RuntimeName, handler, source string, env ...string) *site {
	t.Helper()
	return startSiteOf(t, Request{Runtime: runtime, Protocol: v1alpha1.ProtocolHTTP, Handler: handler,
		Code: &v1alpha1.Code{Inline: source}}, env...)
}

func startSiteOf(t *testing.T, r Request, env ...string) *site {
	t.Helper()
	free := listenOn(t, "127.0.0.1:0")
	address := free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(address)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	s := &site{
		shim:    startCode(t, r, append(env, "PORT="+port)...),
		address: address,
		client:  &http.Client{Transport: transport},
	}
	ctx := withPatience(t)
	for {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return s
		}
		select {
		case status := <-s.exited:
			t.Fatalf("the shim ended with status %d: %s", status, s.errors())
		case <-ctx.Done():
			t.Fatalf("the shim does not listen: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// answer is what a site said.
type answer struct {
	status int
	header http.Header
	length int64
	coding []string
	body   string
	reused bool
}

// ask sends a request and reads the whole answer.
func (s *site) ask(method, path string, body io.Reader, header ...string) answer {
	s.t.Helper()
	resp, reused := s.begin(method, path, body, header...)
	got, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{resp.StatusCode, resp.Header, resp.ContentLength, resp.TransferEncoding, string(got), reused}
}

// begin sends a request and reads the head of the answer.
func (s *site) begin(method, path string, body io.Reader, header ...string) (*http.Response, bool) {
	s.t.Helper()
	reused := false
	ctx := httptrace.WithClientTrace(withPatience(s.t), &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused },
	})
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp, reused
}

// dial opens a connection on which bytes can be written by hand.
func (s *site) dial() (net.Conn, *bufio.Reader) {
	s.t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	_ = conn.SetDeadline(time.Now().Add(patience))
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn, bufio.NewReader(conn)
}

// send writes bytes by hand.
func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

// readAnswer reads one answer to a GET from a connection.
func readAnswer(t *testing.T, r *bufio.Reader) answer {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	var body strings.Builder
	if _, err := io.Copy(&body, resp.Body); err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, resp.ContentLength, resp.TransferEncoding, body.String(), false}
}
