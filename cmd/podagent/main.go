// Command podagent is the agent that stands beside every instance. It is told
// what to do by environment variables; see package agentenv.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/windlass-dev/windlass/pkg/podagent"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/httpadapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "podagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := agentenv.Parse(os.Getenv)
	if err != nil {
		return fmt.Errorf("the environment does not say what to do:\n%w", err)
	}
	scheduler, err := podagent.Dial(config.Scheduler)
	if err != nil {
		return err
	}
	defer func() { _ = scheduler.Close() }()
	protocol, closeAdapter, err := newAdapter(config)
	if err != nil {
		return err
	}
	defer closeAdapter()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)).With("function", config.Function, "cid", config.CID)
	return podagent.New(config, podagent.Deps{Adapter: protocol, Scheduler: scheduler, Log: log}).Run(ctx)
}

// newAdapter makes the adapter for the function's protocol.
func newAdapter(c agentenv.Config) (a adapter.Adapter, closeIt func(), err error) {
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Port))
	if c.Protocol == agentenv.ProtocolHTTP {
		a := httpadapter.New(httpadapter.Config{Addr: addr, Concurrency: c.Concurrency})
		return a, a.Close, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("listening for the function's runtime: %w", err)
	}
	namespace, name, _ := strings.Cut(c.Function, "/")
	api := lambda.New(lambda.Config{Namespace: namespace, Function: name, Concurrency: c.Concurrency})
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- api.Serve(serving, listener) }()
	return api, func() { stop(); <-served }, nil
}
