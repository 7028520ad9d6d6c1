package peers

import (
	"context"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// mostIdle is more connections than any scenario has, so that the proxy opens each once.
const mostIdle = 4096

// newProxy is Go's own proxy as its documentation makes one, but for the number of connections
// that it keeps; net/http's own, of two, would be a straw man.
func newProxy(target *url.URL, pooled bool) http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport = &http.Transport{MaxIdleConnsPerHost: mostIdle}
	if pooled {
		proxy.BufferPool = newBuffers()
	}
	return proxy
}

// buffers are those that a proxy copies bodies with.
type buffers struct{ pool sync.Pool }

// bufferSize is that of httputil's own.
const bufferSize = 32 << 10

func newBuffers() *buffers {
	return &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}}
}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] }

// Put implements httputil.BufferPool.
func (b *buffers) Put(used []byte) { b.pool.Put((*[bufferSize]byte)(used)) }

// runProxy serves a proxy.
func runProxy(ctx context.Context, in io.Reader, out io.Writer, proxy http.Handler) error {
	ops, err := Listen()
	if err != nil {
		return err
	}
	l, err := Listen()
	if err != nil {
		return err
	}
	ctx = UntilEnd(ctx, in)
	failed := make(chan error, 2)
	go func() { failed <- serveUntil(ctx, ops, plainServer(http.HandlerFunc(metrics))) }()
	go func() { failed <- serveUntil(ctx, l, plainServer(proxy)) }()
	if err := (Ready{URL: URLOf(l), Ops: URLOf(ops)}).Print(out); err != nil {
		return err
	}
	return <-failed
}
