package scheduler

import "sync"

// busyNodes are the nodes that have more threads that want to run than cores, by what instances
// say. The scheduler knows of those that run instances of its functions.
type busyNodes struct {
	mu sync.Mutex // guards by
	// by counts the instances that say so, by node.
	by map[string]int
}

func newBusyNodes() *busyNodes { return &busyNodes{by: make(map[string]int)} }

// hear counts one instance more that says so of its node, or one less.
func (b *busyNodes) hear(node string, busy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if busy {
		b.by[node]++
		return
	}
	if b.by[node]--; b.by[node] == 0 {
		delete(b.by, node)
	}
}

func (b *busyNodes) some() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.by) > 0
}

func (b *busyNodes) has(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.by[node] > 0
}
