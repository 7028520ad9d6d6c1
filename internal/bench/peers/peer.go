package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"time"
)

// Program is the name of the program's file.
const Program = "benchpeer"

// Arguments of the program: what it is to be.
const (
	FunctionArgument    = "function"
	ProxyArgument       = "proxy"
	PooledProxyArgument = "pooled-proxy"
	BalancerArgument    = "balancer"
	LoadArgument        = "load"
)

// Ready is the line that a program prints once it can be used.
type Ready struct {
	// URL is where it takes calls, and Ops where it serves metrics; empty if it does not.
	URL string `json:"url,omitempty"`
	Ops string `json:"ops,omitempty"`
	// Wire is where a scheduler takes gateways and agents, host:port.
	Wire string `json:"wire,omitempty"`
}

// Print prints the line.
func (r Ready) Print(to io.Writer) error { return json.NewEncoder(to).Encode(r) }

// UntilEnd is a context that ends with a reader.
func UntilEnd(parent context.Context, in io.Reader) context.Context {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, in)
	}()
	return ctx
}

// Listen listens at a free port, of this machine only.
func Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// URLOf is where a listener is called.
func URLOf(l net.Listener) string { return "http://" + l.Addr().String() }

// Main runs the program until in ends. Args say what to be, and for a proxy where it leads: a URL,
// or for a balancer Routes as JSON;
// getenv returns an environment variable.
func Main(ctx context.Context, args []string, in io.Reader, out io.Writer, getenv func(string) string) error {
	switch {
	case len(args) == 1 && args[0] == FunctionArgument:
		return runFunction(ctx, in, out, getenv("PORT"))
	case len(args) == 2 && (args[0] == ProxyArgument || args[0] == PooledProxyArgument):
		target, err := url.Parse(args[1])
		if err != nil {
			return err
		}
		return runProxy(ctx, in, out, newProxy(target, args[0] == PooledProxyArgument))
	case len(args) == 2 && args[0] == BalancerArgument:
		balancer, err := newBalancer(args[1])
		if err != nil {
			return err
		}
		return runProxy(ctx, in, out, balancer)
	case len(args) == 1 && args[0] == LoadArgument:
		return runLoad(ctx, in, out)
	}
	return fmt.Errorf("windlass bench starts this program, with other arguments than %q", strings.Join(args, " "))
}

// plainServer is net/http's server without settings, as most who measure one use it.
func plainServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
}

// serveUntil serves until ctx ends.
func serveUntil(ctx context.Context, l net.Listener, server *http.Server) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving at %s: %w", l.Addr(), err)
	}
	return nil
}

// metrics are two that programs with Prometheus' client have, under the same names.
func metrics(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Fprintf(w, "go_memstats_mallocs_total %d\ngo_memstats_alloc_bytes_total %d\n", m.Mallocs, m.TotalAlloc)
}
