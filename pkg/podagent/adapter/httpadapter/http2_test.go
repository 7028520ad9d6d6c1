package httpadapter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// serveHTTP2 is an adapter for a function that speaks nothing but HTTP/2 without TLS.
func serveHTTP2(t *testing.T, handler http.HandlerFunc) *Adapter {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	server.Config.Protocols = &only
	server.Start()
	a := New(Config{Addr: server.Listener.Addr().String()})
	t.Cleanup(func() { a.Close(); server.Close() })
	return a
}

func grpcCall(body io.Reader) *adapter.Call {
	call := post(body, -1)
	call.RequestURI, call.Header = "/shop.Cart/Add", invocation.Fields{{Name: "Content-Type", Value: "application/grpc+proto"}}
	return call
}

func TestAGRPCCallIsAnHTTP2RequestWithTrailersBothWays(t *testing.T) {
	a := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = fmt.Fprintf(w, "%s %s %s %s %q %q %v", r.Proto, r.Host, r.RequestURI, body, r.Header["Te"], r.Header["User-Agent"], r.Trailer)
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set(http.TrailerPrefix+"X-Sudden", "1")
	})
	call := grpcCall(io.MultiReader(strings.NewReader("abc")))
	add(call, "Connection", "X-Hop")
	add(call, "X-Hop", "1")
	call.Trailer = http.Header{"X-Digest": {"d"}}
	w := must(t, a, call)
	if want := `HTTP/2.0 hello.example /shop.Cart/Add abc ["trailers"] [] map[X-Digest:[d]]`; w.body.String() != want {
		t.Errorf("the function saw %s, want %s", w.body.String(), want)
	}
	if w.trailer.Get("Grpc-Status") != "0" || w.trailer.Get("X-Sudden") != "1" || len(w.head.Trailer) != 1 {
		t.Errorf("trailers %v, announced %v", w.trailer, w.head.Trailer)
	}
}

func TestCallsByHTTP2ShareAConnection(t *testing.T) {
	const calls = 50
	var conns atomic.Int64
	var all sync.WaitGroup
	all.Add(calls)
	a := serveHTTP2(t, func(http.ResponseWriter, *http.Request) { all.Done(); all.Wait() })
	dial := a.http2.dial
	a.http2.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conns.Add(1)
		return dial(ctx, network, addr)
	}
	var done sync.WaitGroup
	for range calls {
		done.Go(func() { must(t, a, grpcCall(strings.NewReader(""))) })
	}
	done.Wait()
	if conns.Load() != 1 {
		t.Errorf("%d connections", conns.Load())
	}
}

// settled is the function's end of an HTTP/2 connection behind the client's preface, whose
// streams a test answers by hand.
type settled struct {
	net.Conn
	*http2.Framer
}

// nextStream is the next stream that the client opens; 0 if it opens none.
func (s settled) nextStream() uint32 {
	for {
		frame, err := s.ReadFrame()
		if err != nil {
			return 0
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				_ = s.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			return frame.StreamID
		}
	}
}

func (s settled) head(stream uint32, end bool, fields ...string) {
	var block strings.Builder
	to := hpack.NewEncoder(&block)
	for n := 0; n < len(fields); n += 2 {
		_ = to.WriteField(hpack.HeaderField{Name: fields[n], Value: fields[n+1]})
	}
	_ = s.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: end})
}

func framed(treat func(settled)) func(net.Conn) {
	return func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		s := settled{c, http2.NewFramer(c, c)}
		_ = s.WriteSettings()
		treat(s)
	}
}

// The function runs to the end of its connection after treat, so that not this end breaks off.
func TestHowAStreamEndsDecidesWhatTheCallerMayDo(t *testing.T) {
	for _, tc := range []struct {
		name  string
		treat func(settled, uint32)
		want  error
	}{
		{"refused", func(s settled, id uint32) { _ = s.WriteRSTStream(id, http2.ErrCodeRefusedStream) }, adapter.ErrNotStarted},
		{"reset", func(s settled, id uint32) { _ = s.WriteRSTStream(id, http2.ErrCodeInternal) }, adapter.ErrFunctionLost},
		{"reset within the body", func(s settled, id uint32) {
			s.head(id, false, ":status", "200")
			_ = s.WriteData(id, false, []byte("abc"))
			_ = s.WriteRSTStream(id, http2.ErrCodeInternal)
		}, adapter.ErrFunctionLost},
		{"left behind", func(s settled, _ uint32) { _ = s.WriteGoAway(0, http2.ErrCodeNo, nil) }, adapter.ErrNotTaken},
		{"left behind after a warning", func(s settled, id uint32) {
			_ = s.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil)
			_ = s.WriteGoAway(id-1, http2.ErrCodeNo, nil)
		}, adapter.ErrNotTaken},
		{"left behind after an answer's head", func(s settled, id uint32) {
			s.head(id, false, ":status", "200")
			_ = s.WriteGoAway(0, http2.ErrCodeNo, nil)
		}, adapter.ErrFunctionLost},
		{"taken before the connection closes", func(s settled, id uint32) {
			_ = s.WriteGoAway(id, http2.ErrCodeNo, nil)
			_ = s.Close()
		}, adapter.ErrFunctionLost},
		{"closed", func(s settled, _ uint32) { _ = s.Close() }, adapter.ErrFunctionLost},
		{"closed within the body", func(s settled, id uint32) {
			s.head(id, false, ":status", "200")
			_ = s.WriteData(id, false, []byte("abc"))
			_ = s.Close()
		}, adapter.ErrFunctionLost},
		{"shorter than announced", func(s settled, id uint32) {
			s.head(id, false, ":status", "200", "content-length", "9")
			_ = s.WriteData(id, true, []byte("abc"))
		}, adapter.ErrBadAnswer},
		{"without a status", func(s settled, id uint32) { s.head(id, true, "x", "y") }, adapter.ErrBadAnswer},
		{"with a status above 599", func(s settled, id uint32) { s.head(id, true, ":status", "700") }, adapter.ErrBadAnswer},
		{"a frame that is none", func(s settled, _ uint32) { _, _ = s.Conn.Write([]byte(strings.Repeat("x", 100))) }, adapter.ErrBadAnswer},
		{"a trailers-only answer", func(s settled, id uint32) { s.head(id, true, ":status", "200", "grpc-status", "12") }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := script(t, framed(func(s settled) {
				if id := s.nextStream(); id != 0 {
					tc.treat(s, id)
				}
				_, _ = io.Copy(io.Discard, s.Conn)
			}))
			w := &recorder{}
			err := a.Invoke(t.Context(), grpcCall(strings.NewReader("")), w)
			if tc.want != nil {
				wantError(t, err, tc.want)
			} else if err != nil || w.head.Header.Get("Grpc-Status") != "12" || w.head.ContentLength != 0 {
				t.Errorf("%v, %+v", err, w.head)
			}
		})
	}
}

func TestAFunctionWithoutHTTP2IsExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		*Adapter
		want error
	}{
		"a server of net/http": {serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != "PRI" { // how that shows HTTP/2 to its handler
				t.Errorf("the function saw %s %s", r.Method, r.RequestURI)
			}
			w.WriteHeader(http.StatusHTTPVersionNotSupported)
		}), adapter.ErrUnsendable},
		// They may be about to end, and then another instance can have the call.
		"one that closes the connection": {script(t, func(c net.Conn) { readHead(c) }), adapter.ErrBadAnswer},
		"one that resets it":             {script(t, func(c net.Conn) { readHead(c); _ = c.(*net.TCPConn).SetLinger(0) }), adapter.ErrBadAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.Invoke(t.Context(), grpcCall(strings.NewReader("")), &recorder{})
			wantError(t, err, tc.want)
			if err == nil || !strings.Contains(err.Error(), "h2c") {
				t.Errorf("%v does not say what is missing", err)
			}
		})
	}
}

// The function goes on after each of these calls, and runs the next one of its own protocol.
func TestAnHTTP1CallOfAFunctionThatSpeaksHTTP2OnlyIsExplained(t *testing.T) {
	ok := func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("the function saw %s by %s", r.RequestURI, r.Proto)
		}
	}
	for name, tc := range map[string]struct {
		*Adapter
		want error
	}{
		// They say first that they speak HTTP/2, so they saw no request.
		"a server of grpc-go":         {grpcServer(t), adapter.ErrUnsendable},
		"one that leaves it hanging":  {script(t, func(c net.Conn) { s := settled{c, http2.NewFramer(c, c)}; _ = s.WriteSettings(); readToEnd(s) }), adapter.ErrUnsendable},
		"one that says why it closes": {script(t, sayGoAway), adapter.ErrUnsendable},
		// It closes the connection without a word, as a handler of HTTP/1.1 may.
		"a server of net/http": {serveHTTP2(t, ok), adapter.ErrOtherProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			for _, call := range []*adapter.Call{get("/"), post(strings.NewReader("abc"), 3), post(io.MultiReader(strings.NewReader("abc")), -1)} {
				ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // for one that waits on
				err := tc.Invoke(ctx, call, &recorder{})
				stop()
				wantError(t, err, tc.want)
				if err == nil || !strings.Contains(err.Error(), "h2c") {
					t.Errorf("%v does not say what is spoken", err)
				}
			}
		})
	}
}

func readToEnd(s settled) { _, _ = io.Copy(io.Discard, s.Conn) }

func sayGoAway(c net.Conn) {
	s := settled{c, http2.NewFramer(c, c)}
	_ = s.WriteSettings()
	_ = s.WriteGoAway(0, http2.ErrCodeProtocol, nil)
	readToEnd(s)
}

// grpcServer is an adapter for a server of grpc-go without methods.
func grpcServer(t *testing.T) *Adapter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	go func() { _ = server.Serve(l) }()
	a := New(Config{Addr: l.Addr().String()})
	t.Cleanup(func() { a.Close(); server.Stop() })
	return a
}

// A function that has answered by HTTP/1.1 broke the call off itself, and so did one that speaks no
// HTTP/2.
func TestAConnectionThatIsClosedWithoutAWordIsALostCall(t *testing.T) {
	t.Run("speaks both", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.RequestURI == "/panic" {
				panic(http.ErrAbortHandler)
			}
		}))
		var both http.Protocols
		both.SetHTTP1(true)
		both.SetUnencryptedHTTP2(true)
		server.Config.Protocols = &both
		server.Start()
		a := New(Config{Addr: server.Listener.Addr().String()})
		t.Cleanup(func() { a.Close(); server.Close() })
		must(t, a, grpcCall(strings.NewReader("")))
		must(t, a, get("/"))
		a.idle.take().close()
		wantError(t, a.Invoke(t.Context(), get("/panic"), &recorder{}), adapter.ErrFunctionLost)
	})
	t.Run("speaks HTTP/1.1", func(t *testing.T) {
		a := script(t, func(c net.Conn) { readHead(c) })
		wantError(t, a.Invoke(t.Context(), get("/"), &recorder{}), adapter.ErrFunctionLost)
	})
}

// The function goes on, and has the next call on the same connection.
func TestACallThatAnHTTP2FunctionTakesNoHeadersOfCannotBeSent(t *testing.T) {
	a := script(t, framed(func(s settled) {
		_ = s.WriteSettings(http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: 1 << 10})
		for id := s.nextStream(); id != 0; id = s.nextStream() {
			s.head(id, true, ":status", "200")
		}
	}))
	must(t, a, grpcCall(strings.NewReader("")))
	large, odd := grpcCall(strings.NewReader("")), grpcCall(strings.NewReader(""))
	add(large, "X-Large", strings.Repeat("x", 2<<10))
	odd.Trailer = http.Header{"Content-Length": nil}
	for _, call := range []*adapter.Call{large, odd} {
		wantError(t, a.Invoke(t.Context(), call, &recorder{}), adapter.ErrUnsendable)
	}
	must(t, a, grpcCall(strings.NewReader("")))
}

func TestAFunctionThatNeverAnswersHTTP2IsGivenUp(t *testing.T) {
	ctx, cancel := cancelled(t)
	over := make(chan struct{})
	a := script(t, func(c net.Conn) { readHead(c); cancel(); <-over })
	defer close(over)
	wantError(t, a.Invoke(ctx, grpcCall(strings.NewReader("")), &recorder{}), adapter.ErrNotStarted)
}

func TestAnHTTP2FunctionThatIsNotThereIsNotStarted(t *testing.T) {
	a := New(Config{Addr: "127.0.0.1:1"})
	wantError(t, a.Invoke(t.Context(), grpcCall(strings.NewReader("")), &recorder{}), adapter.ErrNotStarted)
}

func TestAnHTTP2CallThatItsClientCutsIsLost(t *testing.T) {
	gone := errors.New("client went away")
	seen := make(chan error, 1)
	a := serveHTTP2(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		seen <- err
	})
	pr, pw := io.Pipe()
	go func() {
		_, _ = io.WriteString(pw, "abc")
		_ = pw.CloseWithError(gone)
	}()
	if err := a.Invoke(t.Context(), grpcCall(pr), &recorder{}); !errors.Is(err, gone) || !errors.Is(err, adapter.ErrFunctionLost) {
		t.Errorf("got %v", err)
	}
	if err := <-seen; err == nil {
		t.Error("the function saw a complete body")
	}
}

func TestAnHTTP2CallThatIsCancelledEndsAtTheFunction(t *testing.T) {
	saw := make(chan error, 1)
	ctx, cancel := cancelled(t)
	a := serveHTTP2(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		saw <- r.Context().Err()
	})
	pr, pw := io.Pipe()
	defer pw.Close()
	wantError(t, a.Invoke(ctx, grpcCall(pr), &recorder{}), adapter.ErrFunctionLost)
	if err := <-saw; !errors.Is(err, context.Canceled) {
		t.Errorf("the function saw %v", err)
	}
}

// Clients that stopped reading: what the function sends them stays at the function, and other
// calls go on beside them, on the same connection.
func TestAnHTTP2AnswerThatNobodyTakesIsNotKeptInMemory(t *testing.T) {
	const calls, size = 8, 8 << 20
	var sent atomic.Int64
	stuck := make(chan struct{})
	a := serveHTTP2(t, func(w http.ResponseWriter, r *http.Request) {
		if r.RequestURI == "/small" {
			return
		}
		part := make([]byte, 32<<10)
		for range size / len(part) {
			if _, err := w.Write(part); err != nil {
				return
			}
			sent.Add(int64(len(part)))
		}
	})
	var waiting, done sync.WaitGroup
	waiting.Add(calls)
	for range calls {
		var once sync.Once
		done.Go(func() {
			w := &recorder{onWrite: func() error { once.Do(func() { waiting.Done(); <-stuck }); return nil }}
			if err := a.Invoke(t.Context(), grpcCall(strings.NewReader("")), w); err != nil || w.body.Len() != size {
				t.Errorf("%v after %d bytes", err, w.body.Len())
			}
		})
	}
	waiting.Wait()
	// The function's answers take turns on their connection: it has sent what it can when
	// many small ones have come and nothing else has.
	for before := int64(-1); before != sent.Load(); {
		before = sent.Load()
		for range 100 {
			call := grpcCall(strings.NewReader(""))
			call.RequestURI = "/small"
			must(t, a, call)
		}
	}
	// The function's buffers hold some as well.
	if most := int64(calls * (2*streamWindow + 64<<10)); sent.Load() > most {
		t.Errorf("the function got rid of %d bytes, want at most %d", sent.Load(), most)
	}
	close(stuck)
	done.Wait()
}

// A real client and a real server of gRPC, with the adapter between them.
func TestGRPCWorksFromEndToEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		in, _ := metadata.FromIncomingContext(stream.Context())
		_ = stream.SetHeader(metadata.Pairs("x-head", strings.Join(in["x-asked"], "")))
		stream.SetTrailer(metadata.Pairs("x-tail-bin", "\x00\xff"))
		for {
			m := &wrapperspb.StringValue{}
			if err := stream.RecvMsg(m); err == io.EOF {
				return status.Error(codes.Aborted, "enough")
			} else if err != nil {
				return err
			}
			m.Value += "!"
			if err := stream.SendMsg(m); err != nil {
				return err
			}
		}
	}))
	go func() { _ = server.Serve(l) }()
	defer server.Stop()
	a := New(Config{Addr: l.Addr().String()})
	defer a.Close()
	client, err := grpc.NewClient(strings.TrimPrefix(front(t, a).URL, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-asked", "this")
	stream, err := client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/echo.Echo/Talk")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"a", "b", strings.Repeat("c", 1<<20)} {
		m := wrapperspb.String(text)
		if err := stream.SendMsg(m); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(m); err != nil || m.GetValue() != text+"!" {
			t.Fatalf("%v, %d bytes", err, len(m.GetValue()))
		}
	}
	_ = stream.CloseSend()
	err = stream.RecvMsg(&wrapperspb.StringValue{})
	if status.Code(err) != codes.Aborted || status.Convert(err).Message() != "enough" {
		t.Errorf("the end is %v", err)
	}
	head, _ := stream.Header()
	if strings.Join(head["x-head"], "") != "this" || strings.Join(stream.Trailer()["x-tail-bin"], "") != "\x00\xff" {
		t.Errorf("metadata %v and %v", head, stream.Trailer())
	}
}
