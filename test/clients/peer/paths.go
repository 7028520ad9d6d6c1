package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/net/websocket"
)

// paths is what each path does.
func paths(c *conversations) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/see", see)
	mux.HandleFunc("/bytes", sendBytes)
	mux.HandleFunc("/duplex", duplex)
	mux.HandleFunc("/trailers", trailers)
	mux.HandleFunc("/hints", hints)
	mux.HandleFunc("/early", early)
	mux.HandleFunc("/events", c.events)
	mux.HandleFunc("/next", c.next)
	// A client that is not a browser has no Origin.
	mux.Handle("/ws", websocket.Server{Handler: echo})
	return mux
}

// seen is what the function saw of a call.
type seen struct {
	Method, Proto, Host, Query, Instance string
	Length                               int64
	Header, Trailer                      http.Header
	Bytes                                int64
	Sum                                  string
}

// see reads the body, pauses after each 64 KiB for the milliseconds of pause, waits for those of ms,
// and says what it saw.
func see(w http.ResponseWriter, r *http.Request) {
	pause, sum := milliseconds(r, "pause"), sha256.New()
	n, err := io.Copy(pausing{sum, pause}, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	time.Sleep(milliseconds(r, "ms"))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(seen{
		Method: r.Method, Proto: r.Proto, Host: r.Host, Query: r.URL.RawQuery, Instance: os.Getenv("WINDLASS_INSTANCE"),
		Length: r.ContentLength, Header: r.Header, Trailer: r.Trailer, Bytes: n, Sum: hex.EncodeToString(sum.Sum(nil)),
	})
}

func milliseconds(r *http.Request, name string) time.Duration {
	n, _ := strconv.Atoi(r.URL.Query().Get(name))
	return time.Duration(n) * time.Millisecond
}

// pausing takes at most 64 KiB at a time, and pauses after it.
type pausing struct {
	hash.Hash
	pause time.Duration
}

func (p pausing) ReadFrom(r io.Reader) (total int64, err error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(r, buffer)
		_, _ = p.Write(buffer[:n])
		total += int64(n)
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return total, nil
		} else if err != nil {
			return total, err
		}
		time.Sleep(p.pause)
	}
}

// sendBytes sends n bytes of chance that is always the same, with their length if the query has
// length; it breaks off behind break bytes.
func sendBytes(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	n, _ := strconv.ParseInt(query.Get("n"), 10, 64)
	if query.Has("length") {
		w.Header().Set("Content-Length", strconv.FormatInt(n, 10))
	}
	w.Header().Set("Etag", `"always"`)
	if r.Method == http.MethodHead {
		return
	}
	source := io.Reader(rand.NewChaCha8([32]byte{}))
	if stop, err := strconv.ParseInt(query.Get("break"), 10, 64); err == nil {
		_, _ = io.CopyN(w, source, stop)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.CopyN(w, source, n)
}

// duplex sends each part of the body back as soon as it comes.
func duplex(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// h2 is so by itself.
	_ = control.EnableFullDuplex()
	buffer := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
		_ = control.Flush()
	}
}

func trailers(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Trailer", "X-Sum")
	n, _ := io.Copy(io.Discard, r.Body)
	fmt.Fprintf(w, "%d bytes\n", n)
	_ = http.NewResponseController(w).Flush()
	w.Header().Set("X-Sum", strconv.FormatInt(n, 10))
	w.Header().Set(http.TrailerPrefix+"X-Unannounced", "yes")
}

func hints(w http.ResponseWriter, _ *http.Request) {
	for _, link := range []string{"</a.css>; rel=preload", "</b.css>; rel=preload"} {
		w.Header().Set("Link", link)
		w.WriteHeader(http.StatusEarlyHints)
	}
	w.Header().Del("Link")
	fmt.Fprintln(w, "hinted")
}

// early answers without reading the body.
func early(w http.ResponseWriter, r *http.Request) {
	status, _ := strconv.Atoi(r.URL.Query().Get("status"))
	w.WriteHeader(status)
	fmt.Fprintln(w, "early")
}

// conversations are streams of events that go on when another call says so.
type conversations struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
}

func (c *conversations) of(key string) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[key] == nil {
		c.waiting[key] = make(chan struct{})
	}
	return c.waiting[key]
}

// events sends n server-sent events, each once next was called for the one before.
func (c *conversations) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	// As the documentation of nginx says.
	w.Header().Set("X-Accel-Buffering", "no")
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	for i := range n {
		fmt.Fprintf(w, "id: %d\ndata: event %d\n\n", i, i)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-c.of(r.URL.Query().Get("key")):
		case <-r.Context().Done():
			return
		}
	}
}

func (c *conversations) next(_ http.ResponseWriter, r *http.Request) {
	select {
	case c.of(r.URL.Query().Get("key")) <- struct{}{}:
	case <-r.Context().Done():
	}
}

// echo says who it is, and then sends every message back.
func echo(socket *websocket.Conn) {
	socket.MaxPayloadBytes = 4 << 20
	if websocket.Message.Send(socket, "instance "+os.Getenv("WINDLASS_INSTANCE")) != nil {
		return
	}
	for {
		var message frame
		if frames.Receive(socket, &message) != nil || frames.Send(socket, message) != nil {
			return
		}
	}
}

// frame is a message with its kind, text or binary.
type frame struct {
	data []byte
	kind byte
}

var frames = websocket.Codec{
	Marshal: func(v any) ([]byte, byte, error) { return v.(frame).data, v.(frame).kind, nil },
	Unmarshal: func(data []byte, kind byte, v any) error {
		*v.(*frame) = frame{data, kind}
		return nil
	},
}
