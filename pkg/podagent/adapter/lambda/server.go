package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	base          = "/2018-06-01/runtime"
	headErrorType = "Lambda-Runtime-Function-Error-Type"
	headErrorBody = "Lambda-Runtime-Function-Error-Body"
	headMode      = "Lambda-Runtime-Function-Response-Mode"

	// maxDrain bounds how much of an unwanted body is read, so that its
	// sender comes to read the refusal.
	maxDrain = 64 << 20
	// maxInitError bounds the size of an init error, in bytes.
	maxInitError = 64 << 10
	// shutdownTimeout is how long the last replies may take.
	shutdownTimeout = 500 * time.Millisecond
)

var (
	errGivenUp      = errors.New("nobody waits for the answer any more")
	errDisconnected = errors.New("the connection ended before the answer did")

	errServerGone = errors.New("the Runtime API's server has ended")
)

// server is the Runtime API: the runtime client's side.
type server struct {
	dispatcher *dispatcher
	clients    *clients
	answers    *bodyBudget
}

// serve serves until ctx ends or l fails, and then ends all calls; see Adapter.Serve.
func (s *server) serve(ctx context.Context, l net.Listener) error {
	var conns sync.WaitGroup
	requests, endRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endRequests(nil)
	web := &http.Server{
		Handler: s.handler(),
		ConnState: func(c net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				conns.Add(1)
				s.clients.connected()
			case http.StateClosed:
				own := c.(*conn)
				s.clients.disconnected(own.handout(), own.from.open.Load())
				conns.Done()
			}
		},
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: headTimeout,
		MaxHeaderBytes:    maxHead,
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close(); endRequests(errServerGone) })
	defer stop()
	most := func() int64 { return int64(2*s.dispatcher.concurrency() + extraConns) }
	err := web.Serve(&listener{Listener: l, limit: most})
	if ctx.Err() != nil {
		shutdown(web)
	}
	_ = web.Close()
	s.dispatcher.close(errServerGone)
	conns.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving the Runtime API: %w", err)
}

// shutdown lets waiting requests read the end.
func shutdown(server *http.Server) {
	soon, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	_ = server.Shutdown(soon)
}

// endWaiting ends a waiting request. Runtime clients of Windlass know 204 as the ordinary end
// of the instance; others would take any reply for an event.
func endWaiting(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headClient) == "" || !errors.Is(context.Cause(r.Context()), errServerGone) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusNoContent)
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	mux.HandleFunc("GET /2018-06-01/ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	mux.HandleFunc("GET "+assignmentPath, s.serveAssignment)
	mux.HandleFunc("GET "+base+"/invocation/next", s.serveNext)
	mux.HandleFunc("POST "+base+"/invocation/{id}/response", s.serveResponse)
	mux.HandleFunc("POST "+base+"/invocation/{id}/error", s.serveError)
	mux.HandleFunc("POST "+base+"/init/error", s.serveInitError)
	return s.guarded(mux)
}

// guarded admits only requests of the function's runtime.
func (s *server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := r.Context().Value(connKey{}).(*conn)
		if before := c.beginRequest(); before != nil {
			s.clients.keptIdle(time.Since(before.at))
		}
		defer c.endRequest()
		if no := s.clients.admit(r); no != nil {
			w.Header().Set("Connection", "close")
			no.write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// serveNext waits for a call, however long that takes.
func (s *server) serveNext(w http.ResponseWriter, r *http.Request) {
	poll, inbox, no := s.dispatcher.park()
	if no != nil {
		no.write(w)
		return
	}
	select {
	case c := <-inbox:
		what, err := writeEvent(w, r, c)
		s.dispatcher.delivered(c, what, err)
		if what == sentWhole {
			r.Context().Value(connKey{}).(*conn).handedOut(&handout{
				id: c.id, at: time.Now(), promised: r.Header.Get(headClient) != "",
			})
			return
		}
		panic(http.ErrAbortHandler) // returning would end an event that is not whole
	case <-r.Context().Done():
		s.dispatcher.unpark(poll, inbox)
		endWaiting(w, r)
	}
}

// writeEvent writes an event to the runtime client.
func writeEvent(w http.ResponseWriter, r *http.Request, c *call) (delivery, error) {
	if err := r.Context().Err(); err != nil {
		return sentNothing, err
	}
	to := r.Context().Value(connKey{}).(*conn)
	before := to.bytesWritten()
	maps.Copy(w.Header(), c.header)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(c.event.body)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	switch {
	case err == nil:
		return sentWhole, nil
	case to.bytesWritten() == before:
		return sentNothing, err
	}
	return sentPart, err
}

func (s *server) serveResponse(w http.ResponseWriter, r *http.Request) {
	mode := r.Header.Get(headMode)
	if mode != "" && mode != "streaming" {
		refuse(w, r, &refusedMode)
		return
	}
	id := r.PathValue("id")
	if !s.beginAnswer(w, r, id) {
		return
	}
	if mode == "streaming" {
		s.stream(w, r, id)
		return
	}
	s.receiveAnswer(w, r, id, &answer{contentType: r.Header.Get("Content-Type")})
}

func (s *server) serveError(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if s.beginAnswer(w, r, id) {
		s.receiveAnswer(w, r, id, &answer{functionError: errorType(r.Header.Get(headErrorType))})
	}
}

// beginAnswer reports whether to read the answer's body. If not, it has replied.
func (s *server) beginAnswer(w http.ResponseWriter, r *http.Request, id string) bool {
	discard, no := s.dispatcher.answerBegins(id)
	switch {
	case no != nil:
		refuse(w, r, no)
	case discard:
		drain(r)
		accept(w)
	default:
		return true
	}
	return false
}

// receiveAnswer reads a whole answer into ans. The sender waits for room.
func (s *server) receiveAnswer(w http.ResponseWriter, r *http.Request, id string, ans *answer) {
	body, err := s.answers.read(r.Context(), r.Body, r.ContentLength)
	var tooLarge *tooLargeError
	switch {
	case errors.As(err, &tooLarge):
		refused := refusedSize
		refused.Message = "the answer is too large: " + tooLarge.Error()
		if no := s.dispatcher.answerEnds(id, errorAnswer(responseTooLarge, refused.Message)); no != nil {
			refused = *no
		}
		refuse(w, r, &refused)
		return
	case err != nil:
		s.dispatcher.answerBreaks(id, errDisconnected)
		refusedTruncated.write(w)
		return
	}
	ans.body = body
	if no := s.dispatcher.answerEnds(id, ans); no != nil {
		refuse(w, r, no)
		return
	}
	accept(w)
}

// stream passes an answer on while it comes.
func (s *server) stream(w http.ResponseWriter, r *http.Request, id string) {
	pr, pw := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { _ = pw.CloseWithError(errDisconnected) })
	defer stop()
	s.dispatcher.answerStreams(id, r.Header.Get("Content-Type"), pr)
	body := &source{from: r.Body}
	_, err := io.Copy(pw, body)
	switch {
	case body.err != nil:
		s.dispatcher.answerBreaks(id, errDisconnected)
		_ = pw.CloseWithError(errDisconnected)
		refusedTruncated.write(w)
		return
	case err != nil:
		drain(r)
	}
	// The call is over before its caller can see that.
	no := s.dispatcher.answerEnds(id, nil)
	if late := trailerError(r.Trailer); late != nil {
		_ = pw.CloseWithError(late)
	}
	_ = pw.Close()
	if no != nil {
		refuse(w, r, no)
		return
	}
	accept(w)
}

// source tells an error of reading from one of writing.
type source struct {
	from io.Reader
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != io.EOF {
		s.err = err
	}
	return n, err
}

// trailerError is the error that a streamed answer ended with, or nil.
func trailerError(trailer http.Header) error {
	kind := trailer.Get(headErrorType)
	if kind == "" {
		return nil
	}
	body, err := base64.StdEncoding.DecodeString(trailer.Get(headErrorBody))
	if err != nil || !json.Valid(body) {
		body, _ = json.Marshal(errorBody{Type: kind}) // strings always marshal
	}
	return &midError{kind: errorType(kind), body: bytes.TrimSpace(body)}
}

func (s *server) serveInitError(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxInitError))
	if err != nil {
		refusedTruncated.write(w)
		return
	}
	kind := errorType(r.Header.Get(headErrorType))
	if no := s.dispatcher.cannotStart(initFailure(kind, text)); no != nil {
		refuse(w, r, no)
		return
	}
	drain(r)
	accept(w)
}

// initFailure is the error that the runtime client reported as it started.
func initFailure(kind string, text []byte) error {
	var reported errorBody
	if json.Unmarshal(text, &reported) != nil || reported.Message == "" {
		return fmt.Errorf("%s: %q", kind, text)
	}
	if reported.Type != "" {
		kind = reported.Type
	}
	return fmt.Errorf("%s: %s", kind, reported.Message)
}

func accept(w http.ResponseWriter) {
	writeJSON(w, http.StatusAccepted, map[string]string{"status": "OK"})
}

func refuse(w http.ResponseWriter, r *http.Request, no *refusal) {
	drain(r)
	no.write(w)
}

func drain(r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxDrain))
}
