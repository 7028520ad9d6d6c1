package runtimes

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// event is what the fake Runtime API hands out.
type event struct {
	id, body             string
	trace, clientContext string
}

// broken is the id of a call whose answer breaks the connection.
const broken = "broken"

// posted is what a shim sent: to response, error or init/error.
type posted struct {
	id, kind    string
	contentType string
	errorType   string
	body        string
}

// fakeAPI is the other side of a Lambda runtime client.
type fakeAPI struct {
	server      *httptest.Server
	events      chan event
	polled      chan struct{} // one for each call of next
	results     chan posted
	connections atomic.Int64
	clients     chan string // how the client named itself, for each call of next
	// asked has one for each request for the assignment, and assignments takes
	// the answers; an empty one is 410.
	asked       chan struct{}
	assignments chan string
	// over is closed when the agent ends: what waits reads 204.
	over chan struct{}
}

func newFakeAPI(t *testing.T) *fakeAPI {
	t.Helper()
	api := unstartedAPI(t)
	api.server.Start()
	return api
}

func unstartedAPI(t *testing.T) *fakeAPI {
	t.Helper()
	api := &fakeAPI{events: make(chan event, 1000), polled: make(chan struct{}, 1000), clients: make(chan string, 1000), results: make(chan posted, 1000),
		asked: make(chan struct{}, 1000), assignments: make(chan string, 1), over: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", api.next)
	mux.HandleFunc("GET /windlass/v1/assignment", api.assignment)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/{kind}", api.post)
	mux.HandleFunc("POST /2018-06-01/runtime/init/{kind}", api.post)
	api.server = httptest.NewUnstartedServer(mux)
	api.server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			api.connections.Add(1)
		}
	}
	t.Cleanup(func() {
		api.server.CloseClientConnections()
		api.server.Close()
	})
	return api
}

// env is what the agent tells a runtime client.
func (api *fakeAPI) env() []string {
	return []string{
		"AWS_LAMBDA_RUNTIME_API=" + api.server.Listener.Addr().String(),
		"AWS_LAMBDA_FUNCTION_NAME=greeter",
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
	}
}

func (api *fakeAPI) next(w http.ResponseWriter, r *http.Request) {
	api.polled <- struct{}{}
	api.clients <- r.Header.Get("Windlass-Client")
	select {
	case e := <-api.events:
		h := w.Header()
		h.Set("Lambda-Runtime-Aws-Request-Id", e.id)
		h.Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(time.Hour).UnixMilli()))
		h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:local:0:function:default-greeter")
		h.Set("Content-Type", "application/json")
		if e.trace != "" {
			h.Set("Lambda-Runtime-Trace-Id", e.trace)
		}
		if e.clientContext != "" {
			h.Set("Lambda-Runtime-Client-Context", e.clientContext)
		}
		_, _ = io.WriteString(w, e.body)
	case <-api.over:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

func (api *fakeAPI) assignment(w http.ResponseWriter, r *http.Request) {
	api.asked <- struct{}{}
	select {
	case text := <-api.assignments:
		if text == "" {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = io.WriteString(w, text)
	case <-api.over:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done():
	}
}

func (api *fakeAPI) post(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") == broken {
		panic(http.ErrAbortHandler)
	}
	body, _ := io.ReadAll(r.Body)
	kind := r.PathValue("kind")
	if strings.HasSuffix(r.URL.Path, "/init/error") {
		kind = "init/error"
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, `{"status":"OK"}`)
	api.results <- posted{
		id: r.PathValue("id"), kind: kind,
		contentType: r.Header.Get("Content-Type"),
		errorType:   r.Header.Get("Lambda-Runtime-Function-Error-Type"),
		body:        string(body),
	}
}

// call hands out one event and waits for its result.
func (api *fakeAPI) call(t *testing.T, e event) posted {
	t.Helper()
	api.events <- e
	got := receive(t, "the result of "+e.id, api.results)
	if got.id != e.id {
		t.Fatalf("got the result of %q, want that of %q", got.id, e.id)
	}
	return got
}
