package workers

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"

	"github.com/spf13/cobra"
)

// Flags of the proxy.
const (
	ToFlag     = "to"
	PooledFlag = "pooled"
)

func proxyCommand() *cobra.Command {
	var to string
	var pooled bool
	cmd := workerCommand(ProxyCommand, "Be a proxy with which windlass bench compares", func(cmd *cobra.Command) error {
		target, err := url.Parse(to)
		if err != nil {
			return err
		}
		return runProxy(cmd, newProxy(target, pooled))
	})
	cmd.Flags().StringVar(&to, ToFlag, "", "`URL` that it leads to")
	cmd.Flags().BoolVar(&pooled, PooledFlag, false, "reuse buffers")
	return cmd
}

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

func runProxy(cmd *cobra.Command, proxy http.Handler) error {
	ctx := untilInputEnds(cmd)
	p := newProgram()
	defer p.parts.Stop()
	ops, err := p.serveOps()
	if err != nil {
		return err
	}
	l, err := listenLoopback()
	if err != nil {
		return err
	}
	p.parts.Start("proxy", func(ctx context.Context) error { return serveUntil(ctx, l, plainServer(proxy)) })
	if err := printReady(cmd, Ready{URL: urlOf(l), Ops: ops}); err != nil {
		return err
	}
	return p.wait(ctx)
}
