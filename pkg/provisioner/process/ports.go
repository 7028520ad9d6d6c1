package process

import (
	"fmt"
	"net"
	"sync"
)

// portAttempts is how often to ask for a port before giving up. The kernel
// gives a port again only while the function that it was meant for has not yet
// bound it.
const portAttempts = 32

// ports hands out TCP ports on the loopback, none to two instances at a time.
// It is safe for concurrent use.
type ports struct {
	// free asks the kernel for a port that nobody listens on.
	free func() (int, error)

	mu    sync.Mutex
	taken map[int]bool
}

func newPorts(free func() (int, error)) *ports {
	return &ports{free: free, taken: map[int]bool{}}
}

func (p *ports) acquire() (int, error) {
	for range portAttempts {
		port, err := p.free()
		if err != nil {
			return 0, fmt.Errorf("finding a free port: %w", err)
		}
		if p.reserve(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("finding a free port: the system offered only ports of other instances, %d times", portAttempts)
}

func (p *ports) reserve(port int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[port] {
		return false
	}
	p.taken[port] = true
	return true
}

func (p *ports) release(port int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.taken, port)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
