package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/sameuser"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// serveWire serves the scheduler's and the gateway's side of the wire, each at its own address.
func (w *Windlass) serveWire(parts *lifecycle.Lifecycle) {
	server := serve.NewWire(w.registry, nil)
	agentwire.RegisterInstancesServer(server, w.scheduler)
	controlwire.RegisterSchedulerServer(server, w.scheduler)
	if w.node != nil {
		nodewire.RegisterNodeServer(server, w.node.agent)
	}
	parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, sameuser.Listen(w.wire), server) })
	agents := serve.NewAgents(w.registry, nil, w.gateway)
	parts.Start("agents", func(ctx context.Context) error { return serve.Agents(ctx, sameuser.Listen(w.claims), agents) })
}

// serveHTTP serves a handler.
func (w *Windlass) serveHTTP(parts *lifecycle.Lifecycle, name string, l net.Listener, handler http.Handler) {
	parts.Start(name+" listener", func(ctx context.Context) error {
		return serve.HTTP(ctx, l, handler, w.config.DrainTimeout, w.log)
	})
}

// serveCalls serves the gateway.
func (w *Windlass) serveCalls(parts *lifecycle.Lifecycle) {
	parts.Start("gateway listener", func(ctx context.Context) error {
		return serve.Calls(ctx, w.front, w.calls(), w.config.DrainTimeout, w.registry, w.log)
	})
}

// calls is the gateway. Who calls with a key is no page that came along.
func (w *Windlass) calls() http.Handler {
	if w.callers != nil {
		return w.config.WebGuard.Share(w.gateway)
	}
	return w.guarded(w.gateway)
}

// guarded keeps other people's web pages away from a handler.
func (w *Windlass) guarded(next http.Handler) http.Handler {
	next = w.config.WebGuard.Share(next)
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		if why := w.config.WebGuard.Refuses(r); why != "" {
			gateway.Forbid(to, why+"; start windlass up with --allow-origin for each origin that may")
			return
		}
		next.ServeHTTP(to, r)
	})
}

// unready is why no new calls are taken, or nothing.
func (w *Windlass) unready() string {
	if !w.gateway.Ready() {
		return "draining"
	}
	return ""
}

// listeners are the addresses of a Windlass: for calls, for metrics, of its scheduler (wire) and
// its gateway (claims) for agents, and for the command. Those that are not open are nil.
type listeners struct{ front, ops, wire, claims, control net.Listener }

// listenAll opens all listeners but wire, whose address the instances must know before.
func (l *listeners) listenAll(c Config) (err error) {
	if l.claims, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	if l.front, err = listen("--listen", c.Listen); err != nil {
		return err
	}
	if l.ops, err = listen("--ops-listen", c.OpsListen); err != nil {
		return err
	}
	l.control, err = localapi.Listen(c.DataDir)
	return err
}

func listen(flag, addr string) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, cannotListen(flag, addr, err)
	}
	return l, nil
}

// cannotListen says what a user can do about it.
func cannotListen(flag, addr string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s %s: another program listens there already; stop it, or choose another address with %s (port 0 takes a free one)", flag, addr, flag)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s %s: only root may listen there; choose a port from 1024 on with %s", flag, addr, flag)
	}
	return fmt.Errorf("%s %s: %w", flag, addr, err)
}

func (l *listeners) close() {
	for _, open := range []net.Listener{l.wire, l.claims, l.front, l.ops, l.control} {
		if open != nil {
			_ = open.Close()
		}
	}
}

// GatewayURL is where functions are called.
func (l *listeners) GatewayURL() string { return "http://" + l.front.Addr().String() }

// OpsURL is where health and metrics are.
func (l *listeners) OpsURL() string { return "http://" + l.ops.Addr().String() }

// FunctionURL is where one function is called.
func (l *listeners) FunctionURL(fn *v1alpha1.Function) string {
	return l.GatewayURL() + address.Path(fn.Key())
}

// requireKeys makes Windlass require API keys, and makes one that counts for as
// long as it runs.
func (w *Windlass) requireKeys() error {
	secret, key, err := auth.NewKey(auth.Scope{"*"}, time.Now(), 0)
	if err != nil {
		return err
	}
	w.key = secret
	w.callers, err = auth.New(
		auth.Config{
			Policy:   auth.Policy{Auth: auth.Auth{Default: auth.Rule{Mode: auth.ModeRequired}}},
			KeysFile: filepath.Join(w.config.DataDir, auth.KeysFileName), Keys: []auth.Key{key}, Gateways: 1,
		},
		auth.Deps{Client: auth.NewClient(), Registry: w.registry, Log: w.log, Now: time.Now},
	)
	return err
}

// callerPolicy decides who may call; nil if anybody may.
func (w *Windlass) callerPolicy() gateway.Callers {
	if w.callers == nil {
		return nil
	}
	return w.callers
}
