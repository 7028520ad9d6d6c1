package gateway

// Entries is the number of calls that wait or run, and Held that of those which are
// held against their namespaces.
func (g *Gateway) Entries() int {
	return len(g.calls.all())
}

func (g *Gateway) Held() int {
	g.door.mu.Lock()
	defer g.door.mu.Unlock()
	return g.door.book.Held().Calls
}
