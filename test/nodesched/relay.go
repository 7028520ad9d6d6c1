package main

import (
	"errors"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// mood is how a relay treats what passes it.
type mood int

const (
	passes  mood = iota
	refuses      // ends connections, and takes no new ones
	stalls       // lets nothing through, and keeps connections
	drags        // lets everything through late
	lies         // turns to a liar
)

// relay stands between agents and their node agent, and misbehaves in its place.
type relay struct {
	listener net.Listener
	// backend is the file with the node agent's address, which agents write.
	backend string
	// liar is where a liar is.
	liar    string
	serving sync.WaitGroup

	mu      sync.Mutex
	changed *sync.Cond
	mood    mood
	open    map[net.Conn]bool
	closed  bool
	// ended counts the connections that a mood has ended.
	ended int
}

// dragged is how late everything is when a relay drags: more than a healthy node agent needs.
const dragged = 50 * time.Millisecond

func startRelay(backend string) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{listener: listener, backend: backend, open: map[net.Conn]bool{}}
	r.changed = sync.NewCond(&r.mu)
	r.serving.Go(r.serve)
	return r, nil
}

func (r *relay) addr() string { return r.listener.Addr().String() }

// become changes the mood.
func (r *relay) become(m mood) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == refuses || m == lies || r.mood == lies {
		r.closeAll()
	}
	r.mood = m
	r.changed.Broadcast()
}

// cut ends all connections.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closeAll()
}

func (r *relay) closeAll() {
	r.ended += len(r.open)
	for c := range r.open {
		_ = c.Close()
	}
	clear(r.open)
}

func (r *relay) stop() {
	r.mu.Lock()
	r.closed = true
	r.changed.Broadcast()
	r.closeAll()
	r.mu.Unlock()
	_ = r.listener.Close()
	r.serving.Wait()
}

func (r *relay) serve() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return
		}
		to, err := r.dial()
		if err != nil || !r.keep(from, to) {
			_ = from.Close()
			continue
		}
		r.serving.Go(func() { r.copy(to, from) })
		r.serving.Go(func() { r.copy(from, to) })
	}
}

func (r *relay) dial() (net.Conn, error) {
	r.mu.Lock()
	lying := r.mood == lies
	r.mu.Unlock()
	if lying {
		return net.Dial("tcp", r.liar)
	}
	addr, err := os.ReadFile(r.backend)
	if err != nil {
		return nil, err
	}
	return net.Dial("tcp", strings.TrimSpace(string(addr)))
}

// keep enters a pair of connections, unless none are taken.
func (r *relay) keep(from, to net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.mood == refuses {
		_ = to.Close()
		return false
	}
	r.open[from], r.open[to] = true, true
	return true
}

// copy passes on what one side says, until a side ends.
func (r *relay) copy(to, from net.Conn) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }()
	buffer := make([]byte, 16<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !r.await() {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// await waits as long as the mood demands; false if the relay is closed.
func (r *relay) await() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.mood == stalls && !r.closed {
		r.changed.Wait()
	}
	if r.mood == drags {
		r.mu.Unlock()
		time.Sleep(dragged)
		r.mu.Lock()
	}
	return !r.closed
}
