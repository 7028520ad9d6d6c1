package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"

	"github.com/windlass-dev/windlass/internal/bench/peers"
)

// The first argument of a process that is a part of a variant. What package peers has is
// started by its own arguments.
const (
	gatewayArgument = "gateway"
	agentArgument   = "agent"
)

// play is a part of a variant until in ends.
func play(ctx context.Context, args []string, in io.Reader, out io.Writer, getenv func(string) string) error {
	switch {
	case len(args) == 2 && args[0] == gatewayArgument:
		return runGateway(peers.UntilEnd(ctx, in), args[1], out)
	case len(args) == 5 && args[0] == agentArgument:
		return runAgent(peers.UntilEnd(ctx, in), args[1], args[2], args[3], args[4], out)
	}
	return peers.Main(ctx, args, in, out, getenv)
}

// carrierGateway takes clients and agents.
type carrierGateway interface {
	http.Handler
	serveAgent(net.Conn) error
}

// runGateway is a gateway of a kind until ctx ends.
func runGateway(ctx context.Context, kind string, out io.Writer) error {
	gateways := map[string]func() carrierGateway{
		framesRole: func() carrierGateway { return new(framesGateway) },
		httpRole:   func() carrierGateway { return new(httpGateway) },
	}
	if gateways[kind] == nil {
		return fmt.Errorf("there is no gateway %q", kind)
	}
	g := gateways[kind]()
	clients, err := peers.Listen()
	if err != nil {
		return err
	}
	agents, err := peers.Listen()
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	go func() { failed <- acceptAgents(agents, g) }()
	go func() { failed <- http.Serve(rawListener{clients}, g) }()
	if err := (peers.Ready{URL: peers.URLOf(clients), Wire: agents.Addr().String()}).Print(out); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

func acceptAgents(l net.Listener, g carrierGateway) error {
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			// The agent dials again, whatever it was.
			_ = g.serveAgent(c)
		}()
	}
}

// runAgent is an agent of a kind until ctx ends. It dials again whenever its connection ends: that
// is how a gateway cancels a call where it has no other way.
func runAgent(ctx context.Context, kind, cid, gateway, function string, out io.Writer) error {
	// The product's agent does the same.
	runtime.GOMAXPROCS(1)
	pull, known := map[string]func(net.Conn, string, string, func()) error{
		framesRole: pullFrames, framesRelayingRole: pullFramesRelaying, parsingRole: pullParsing, relayingRole: pullRelaying,
	}[kind]
	if !known {
		return fmt.Errorf("there is no agent %q", kind)
	}
	var once sync.Once
	var printed error
	ready := func() { once.Do(func() { printed = peers.Ready{}.Print(out) }) }
	for ctx.Err() == nil && printed == nil {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", gateway)
		if err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		stop := context.AfterFunc(ctx, func() { _ = c.Close() })
		_ = pull(c, cid, function, ready)
		stop()
		_ = c.Close()
	}
	return printed
}
