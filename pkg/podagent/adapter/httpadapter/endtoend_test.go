package httpadapter

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// front is a server that carries what its clients say to the function of a, and back: all of
// HTTP fits through adapter.Call and adapter.ResultWriter.
func front(t *testing.T, a *Adapter) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		call := &adapter.Call{
			ID: strings.Repeat("0", 32), Attempt: 1, Method: r.Method, RequestURI: r.RequestURI, Host: r.Host, Header: adapter.FieldsOf(r.Header),
			ContentLength: r.ContentLength, Trailer: r.Trailer, Upgrade: r.Header.Get("Upgrade"),
			ExpectContinue: r.Header.Get("Expect") != "", Deadline: time.Now().Add(time.Hour),
		}
		out := &frontWriter{w: w, rc: http.NewResponseController(w)}
		call.Body = &frontBody{r.Body, out}
		err := a.Invoke(ctx, call, out)
		switch {
		case out.switched != nil:
			_ = out.switched.Close()
		case err != nil:
			t.Log("the call ended with:", err)
			panic(http.ErrAbortHandler)
		}
	}))
	var all http.Protocols
	all.SetHTTP1(true)
	all.SetUnencryptedHTTP2(true)
	server.Config.Protocols = &all
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// frontWriter is the ResultWriter of front.
type frontWriter struct {
	w        http.ResponseWriter
	rc       *http.ResponseController
	switched net.Conn
	from     *bufio.ReadWriter
}

func (f *frontWriter) WriteHead(h adapter.Head) error {
	if h.Status == http.StatusContinue {
		return nil // the server says it when Body is read
	}
	maps.Copy(f.w.Header(), adapter.HeaderOf(h.Header))
	if h.ContentLength >= 0 && h.Status >= 200 {
		f.w.Header().Set("Content-Length", fmt.Sprint(h.ContentLength))
	}
	if h.Status == http.StatusSwitchingProtocols {
		f.w.Header().Set("Connection", "Upgrade")
		f.w.Header().Set("Upgrade", h.Upgrade)
	}
	for _, name := range h.Trailer {
		f.w.Header().Add("Trailer", name)
	}
	f.w.WriteHeader(h.Status)
	if h.Status == http.StatusSwitchingProtocols {
		var err error
		f.switched, f.from, err = f.rc.Hijack()
		return err
	}
	if h.Status < 200 {
		clear(f.w.Header())
		return nil
	}
	return f.rc.Flush()
}

func (f *frontWriter) Write(p []byte) (int, error) {
	if f.switched != nil {
		return f.switched.Write(p)
	}
	n, err := f.w.Write(p)
	if err != nil {
		return n, err
	}
	return n, f.rc.Flush()
}

func (f *frontWriter) WriteTrailer(trailer invocation.Fields) error {
	for _, t := range trailer {
		f.w.Header().Add(http.TrailerPrefix+t.Name, t.Value)
	}
	return nil
}

// frontBody is the client's body, and then what it sends in a protocol that was switched to.
type frontBody struct {
	body io.Reader
	out  *frontWriter
}

func (b *frontBody) Read(p []byte) (int, error) {
	if b.out.switched != nil {
		return b.out.from.Read(p)
	}
	return b.body.Read(p)
}

func do(t *testing.T, req *http.Request) (*http.Response, string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestTrailersTravelBothWays(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Announced")
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %v", body, r.Trailer)
		w.Header().Set("X-Announced", "1")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "2")
		w.Header().Set(http.TrailerPrefix+"Connection", "close")
	})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, front(t, a).URL, io.MultiReader(strings.NewReader("abc")))
	req.Trailer = http.Header{"X-Digest": {"d"}, "X-Never": nil}
	resp, body := do(t, req)
	if want := "abc map[X-Digest:[d] X-Never:[]]"; body != want {
		t.Errorf("the function saw %q, want %q", body, want)
	}
	if diff := cmp.Diff(http.Header{"X-Announced": {"1"}, "X-Sudden": {"2"}}, resp.Trailer); diff != "" {
		t.Errorf("trailers (-want +got):\n%s", diff)
	}
}

func TestTrailersAreNamedInTheHead(t *testing.T) {
	w := must(t, script(t, answering("HTTP/1.1 200 OK\r\nTrailer: X-B, X-A\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-B: 2\r\n\r\n")), get("/"))
	if !slices.Equal(w.head.Trailer, []string{"X-A", "X-B"}) || w.head.Header.Get("Trailer") != "" {
		t.Errorf("head %+v", w.head)
	}
	if diff := cmp.Diff(http.Header{"X-B": {"2"}}, w.trailer); diff != "" {
		t.Errorf("trailers (-want +got):\n%s", diff)
	}
}

func TestATrailerThatIsNoneIsNotWritten(t *testing.T) {
	for name, value := range map[string]string{"Content-Length": "1", "X A": "1", "X-A": "1\r\nX-B: 2", "Transfer-Encoding": "chunked"} {
		seen := make(chan error, 1)
		a := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			_, err := io.ReadAll(r.Body)
			seen <- err
		})
		call := post(io.MultiReader(strings.NewReader("abc")), -1)
		call.Trailer = http.Header{name: {value}}
		err := a.Invoke(t.Context(), call, &recorder{})
		if name != "X-A" {
			wantError(t, err, adapter.ErrUnsendable)
			continue
		}
		wantError(t, err, adapter.ErrFunctionLost)
		if err := <-seen; err == nil {
			t.Error("the function saw a complete body")
		}
	}
}

func TestInterimAnswersReachTheClient(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</a>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		w.WriteHeader(http.StatusProcessing)
		_, _ = io.WriteString(w, "ok")
	})
	var got []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			got = append(got, fmt.Sprint(code, h.Get("Link")))
			return nil
		},
	})
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, front(t, a).URL, nil)
	if _, body := do(t, req); body != "ok" || !slices.Equal(got, []string{"103</a>; rel=preload", "102"}) {
		t.Errorf("body %q, interim answers %q", body, got)
	}
}

// gate is a body that is sent only when it is opened.
type gate struct {
	open chan struct{}
	io.Reader
	ctx context.Context
}

func (g *gate) Read(p []byte) (int, error) {
	select {
	case <-g.open:
		return g.Reader.Read(p)
	case <-g.ctx.Done():
		return 0, g.ctx.Err()
	}
}

func expecting(ctx context.Context, body string) (*adapter.Call, chan struct{}) {
	open := make(chan struct{})
	call := post(&gate{open, strings.NewReader(body), ctx}, int64(len(body)))
	call.ExpectContinue = true
	return call, open
}

func TestAClientThatWaitsSendsItsBodyWhenTheFunctionWantsIt(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "100-continue" {
			t.Errorf("the function saw %v", r.Header)
		}
		_, _ = io.Copy(w, r.Body)
	})
	call, open := expecting(t.Context(), "abc")
	w := &recorder{onInterim: func() { close(open) }}
	if err := a.Invoke(t.Context(), call, w); err != nil || w.body.String() != "abc" || len(w.interim) != 1 || w.interim[0].Status != 100 {
		t.Errorf("%v: %q, interim answers %+v", err, w.body.String(), w.interim)
	}
}

// The client has lost patience, as it may.
func TestABodyThatComesWithoutContinueIsPassedOn(t *testing.T) {
	a := script(t, func(c net.Conn) {
		request, err := http.ReadRequest(bufio.NewReader(c))
		if err == nil {
			body, _ := io.ReadAll(request.Body)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		}
	})
	call, open := expecting(t.Context(), "abc")
	close(open)
	if w := must(t, a, call); w.body.String() != "abc" || len(w.interim) != 0 {
		t.Errorf("%q, interim answers %+v", w.body.String(), w.interim)
	}
}

func TestABodyThatTheFunctionDoesNotWantIsNotSent(t *testing.T) {
	a := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 0 {
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		_, _ = io.WriteString(w, "next")
	})
	ctx, cancel := cancelled(t)
	call, _ := expecting(ctx, "abc")
	w := &recorder{}
	if err := a.Invoke(ctx, call, w); err != nil || w.head.Status != http.StatusExpectationFailed {
		t.Errorf("%v, %+v", err, w.head)
	}
	cancel()
	if w := must(t, a, get("/")); w.body.String() != "next" {
		t.Errorf("the next call got %q", w.body.String())
	}
}
