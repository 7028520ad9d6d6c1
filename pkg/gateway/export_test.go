package gateway

// Entries is the number of calls that wait or run, and Held that of those which are
// held against their namespaces.
func (g *Gateway) Entries() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.calls)
}

func (g *Gateway) Held() int {
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	return g.door.book.Held().Calls
}
