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
	// maxInitError bounds what is read of why a function could not start.
	maxInitError = 64 << 10
	// farewell is how long the last replies may take.
	farewell = 500 * time.Millisecond
)

var (
	errGivenUp = errors.New("nobody waits for the answer any more")
	errCut     = errors.New("the connection ended before the answer did")
)

// Serve serves the Runtime API on l until ctx ends or l fails, and then ends
// all calls. It closes l and returns when everything that it started has ended;
// nil if that was because of ctx. It is called once.
func (a *Adapter) Serve(ctx context.Context, l net.Listener) error {
	var conns sync.WaitGroup
	requests, endRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer endRequests(nil)
	server := &http.Server{
		Handler: a.handler(),
		ConnState: func(c net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				conns.Add(1)
				a.connected()
			case http.StateClosed:
				own := c.(*conn)
				a.disconnected(own.last.Load(), own.from.open.Load())
				conns.Done()
			}
		},
		BaseContext:       func(net.Listener) context.Context { return requests },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ReadHeaderTimeout: headPatience,
		MaxHeaderBytes:    maxHead,
	}
	stop := context.AfterFunc(ctx, func() { _ = l.Close(); endRequests(errServerGone) })
	defer stop()
	err := server.Serve(&listener{Listener: l, most: a.mostConns})
	if ctx.Err() != nil {
		takeLeave(server)
	}
	_ = server.Close()
	a.mu.Lock()
	a.machine.ended = true
	a.fail(errServerGone)
	a.mu.Unlock()
	conns.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serving the Runtime API: %w", err)
}

// takeLeave lets those read that nothing comes any more who wait for it.
func takeLeave(server *http.Server) {
	soon, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = server.Shutdown(soon)
}

// endWaiting ends a request that nothing came for. Runtime clients of Windlass know that
// 204 is the ordinary end of the instance; to others any reply would be an event.
func endWaiting(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headClient) == "" || !errors.Is(context.Cause(r.Context()), errServerGone) {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Connection", "close")
	w.WriteHeader(http.StatusNoContent)
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

func (a *Adapter) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	mux.HandleFunc("GET /2018-06-01/ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	mux.HandleFunc("GET "+assignmentPath, a.serveAssignment)
	mux.HandleFunc("GET "+base+"/invocation/next", a.serveNext)
	mux.HandleFunc("POST "+base+"/invocation/{id}/response", a.serveResponse)
	mux.HandleFunc("POST "+base+"/invocation/{id}/error", a.serveError)
	mux.HandleFunc("POST "+base+"/init/error", a.serveInitError)
	return a.guarded(mux)
}

// mostConns is how many connections there may be.
func (a *Adapter) mostConns() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return int64(2*a.machine.concurrency + spareConns)
}

// serveNext waits for a call, however long that takes.
func (a *Adapter) serveNext(w http.ResponseWriter, r *http.Request) {
	poll, inbox, no := a.park()
	if no != nil {
		no.write(w)
		return
	}
	select {
	case c := <-inbox:
		what, err := hand(w, r, c)
		a.delivered(c, what, err)
		if what == sentWhole {
			r.Context().Value(connKey{}).(*conn).last.Store(&handout{
				id: c.id, at: time.Now(), promised: r.Header.Get(headClient) != "",
			})
			return
		}
		panic(http.ErrAbortHandler) // returning would end an event that is not whole
	case <-r.Context().Done():
		a.unpark(poll, inbox)
		endWaiting(w, r)
	}
}

// hand writes an event to the runtime client.
func hand(w http.ResponseWriter, r *http.Request, c *call) (delivery, error) {
	if err := r.Context().Err(); err != nil {
		return sentNothing, err
	}
	to := r.Context().Value(connKey{}).(*conn)
	before := to.written.Load()
	maps.Copy(w.Header(), c.header)
	w.WriteHeader(http.StatusOK)
	_, err := w.Write(c.event.body)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	switch {
	case err == nil:
		return sentWhole, nil
	case to.written.Load() == before:
		return sentNothing, err
	}
	return sentPart, err
}

func (a *Adapter) serveResponse(w http.ResponseWriter, r *http.Request) {
	mode := r.Header.Get(headMode)
	if mode != "" && mode != "streaming" {
		refuse(w, r, &refusedMode)
		return
	}
	id := r.PathValue("id")
	if !a.answerBeginsOr(w, r, id) {
		return
	}
	if mode == "streaming" {
		a.stream(w, r, id)
		return
	}
	a.take(w, r, id, &answer{contentType: r.Header.Get("Content-Type")})
}

func (a *Adapter) serveError(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if a.answerBeginsOr(w, r, id) {
		a.take(w, r, id, &answer{functionError: errorType(r.Header.Get(headErrorType))})
	}
}

// answerBeginsOr replies by itself to an answer that is not to be read.
func (a *Adapter) answerBeginsOr(w http.ResponseWriter, r *http.Request, id string) bool {
	discard, no := a.answerBegins(id)
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

// take reads a whole answer into ans. While there is no room for it its sender waits.
func (a *Adapter) take(w http.ResponseWriter, r *http.Request, id string, ans *answer) {
	body, err := a.answers.read(r.Context(), r.Body, r.ContentLength)
	var tooLarge *tooLargeError
	switch {
	case errors.As(err, &tooLarge):
		refused := refusedSize
		refused.Message = "the answer is too large: " + tooLarge.Error()
		if no := a.answerEnds(id, errorAnswer(responseTooLarge, refused.Message)); no != nil {
			refused = *no
		}
		refuse(w, r, &refused)
		return
	case err != nil:
		a.answerBreaks(id, errCut)
		refusedTruncated.write(w)
		return
	}
	ans.body = body
	if no := a.answerEnds(id, ans); no != nil {
		refuse(w, r, no)
		return
	}
	accept(w)
}

// stream passes an answer on while it comes.
func (a *Adapter) stream(w http.ResponseWriter, r *http.Request, id string) {
	pr, pw := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { _ = pw.CloseWithError(errCut) })
	defer stop()
	a.answerStreams(id, r.Header.Get("Content-Type"), pr)
	body := &source{from: r.Body}
	_, err := io.Copy(pw, body)
	switch {
	case body.err != nil:
		a.answerBreaks(id, errCut)
		_ = pw.CloseWithError(errCut)
		refusedTruncated.write(w)
		return
	case err != nil:
		drain(r)
	}
	// The call is over before its caller can see that.
	no := a.answerEnds(id, nil)
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

func (a *Adapter) serveInitError(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxInitError))
	if err != nil {
		refusedTruncated.write(w)
		return
	}
	kind := errorType(r.Header.Get(headErrorType))
	a.mu.Lock()
	no := a.machine.initError()
	if no == nil {
		a.fail(initFailure(kind, text))
	}
	a.mu.Unlock()
	if no != nil {
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
