// Command podagent is the agent beside every instance. Environment variables configure it; see
// package agentenv.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/mem"

	"github.com/windlass-dev/windlass/internal/kerneltimer"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/sameuser"
	"github.com/windlass-dev/windlass/pkg/podagent"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/httpadapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/lambda"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// bufferSizes are the sizes of gRPC's buffers, in bytes. It carries small messages between the
// agent and its scheduler, and the files in an assignment.
var bufferSizes = []int{256, 4 << 10, 16 << 10, 32 << 10, 1 << 20}

// loopback is where the function is.
const loopback = "127.0.0.1"

func main() {
	experimental.SetDefaultBufferPool(mem.NewTieredBufferPool(bufferSizes...))
	// An agent waits for one message after the other. With more than one
	// processor Go wakes a thread for each of them, which then finds nothing.
	runtime.GOMAXPROCS(1)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "podagent:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := agentenv.Parse(os.Getenv)
	if err != nil {
		return fmt.Errorf("the environment does not say what to do:\n%w", err)
	}
	dialer, err := newDialer(config.CA, mtls.Domain(config.TLSDomain))
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// With one of Go's timers, an idle agent makes more than twice as many context switches.
	deps := podagent.Deps{Dialer: dialer, NewTimer: kerneltimer.NewOrGo}
	stopWatching, err := addFunctionEnd(&deps, config)
	if err != nil {
		return err
	}
	defer stopWatching()
	closeAdapter, err := addAdapter(&deps, config, stop)
	if err != nil {
		return err
	}
	deps.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	if !config.Spare { // what that becomes is one of its first lines
		deps.Log = deps.Log.With("function", config.Function, "cid", config.CID)
	}
	agent := podagent.New(config, deps)
	stopServing, err := serveDrained(agent, config.DrainListen, stop)
	if err != nil {
		return errors.Join(err, closeAdapter())
	}
	err = agent.Run(ctx)
	stopServing()
	return errors.Join(err, closeAdapter())
}

// newDialer makes connections to those whom the CA vouches for. Without a CA,
// which is local mode, they are not encrypted.
func newDialer(ca string, domain mtls.Domain) (podagent.Dialer, error) {
	if ca == "" {
		return podagent.Dialer{}, nil
	}
	schedulers, err := mtls.AgentCredentials([]byte(ca), domain.Scheduler())
	if err != nil {
		return podagent.Dialer{}, fmt.Errorf("WINDLASS_CA: %w", err)
	}
	nodes, err := mtls.AgentCredentials([]byte(ca), domain.Node())
	if err != nil {
		return podagent.Dialer{}, fmt.Errorf("WINDLASS_CA: %w", err)
	}
	gateways, err := mtls.AgentCalls([]byte(ca), domain.Gateway())
	if err != nil {
		return podagent.Dialer{}, fmt.Errorf("WINDLASS_CA: %w", err)
	}
	return podagent.Dialer{Schedulers: schedulers, Nodes: nodes, Gateways: gateways}, nil
}

// addFunctionEnd reads from the agent's parent how the function ends.
func addFunctionEnd(deps *podagent.Deps, c agentenv.Config) (stop func(), err error) {
	if !c.EndInherited {
		return func() {}, nil
	}
	// Without this a thread would wait for it.
	if err := syscall.SetNonblock(agentenv.EndFD, true); err != nil {
		return nil, fmt.Errorf("WINDLASS_END_INHERITED needs a pipe as file descriptor %d: %w", agentenv.EndFD, err)
	}
	pipe := os.NewFile(agentenv.EndFD, "how the function ended")
	ends, read := make(chan podagent.FunctionEnd, 1), make(chan struct{})
	deps.FunctionEnd = ends
	go func() {
		defer close(read)
		text, _ := io.ReadAll(io.LimitReader(pipe, agentenv.MaxEnd))
		if lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"); lines[0] != "" {
			ends <- podagent.FunctionEnd{How: lines[0], LastLines: lines[1:]}
		}
	}()
	return func() { _ = pipe.Close(); <-read }, nil
}

// serveDrained answers the function's preStop hook when the calls have ended.
func serveDrained(agent *podagent.Agent, addr string, broke func(error)) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("WINDLASS_DRAIN_LISTEN: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := agent.ServeDrained(ctx, listener); err != nil {
			broke(err)
		}
	}()
	return func() { cancel(); <-served }, nil
}

// addAdapter makes the adapter for the function's protocol. It calls broke, at
// most once, if the adapter cannot go on; what closes it returns that error.
func addAdapter(deps *podagent.Deps, c agentenv.Config, broke func(error)) (closeIt func() error, err error) {
	if c.Protocol == agentenv.ProtocolHTTP {
		addr := net.JoinHostPort(loopback, strconv.Itoa(c.Port))
		a := httpadapter.New(httpadapter.Config{Addr: addr})
		deps.Adapter = a
		return func() error { a.Close(); return nil }, nil
	}
	listener, err := listenForRuntime(c)
	if err != nil {
		return nil, err
	}
	if c.Spare {
		api := lambda.NewSpare(bufferBytes())
		deps.Adapter, deps.Spare = api, api
		return serveRuntimeAPI(api, listener, broke), nil
	}
	namespace, name, _ := strings.Cut(c.Function, "/")
	api := lambda.New(lambda.Config{Namespace: namespace, Function: name, Concurrency: c.Concurrency, BufferBytes: bufferBytes()})
	deps.Adapter = api
	return serveRuntimeAPI(api, listener, broke), nil
}

// bufferBytes is how many bytes of events and answers may be in memory at a time: by the
// limit of memory that GOMEMLIMIT tells, which agents on this machine do not have.
func bufferBytes() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return lambda.DefaultBufferBytes
	}
	return lambda.BufferBytes(limit)
}

// listenForRuntime listens where the function's runtime asks for calls.
func listenForRuntime(c agentenv.Config) (net.Listener, error) {
	if !c.ListenerInherited {
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(c.Port)))
		if err != nil {
			return nil, fmt.Errorf("listening for the function's runtime (WINDLASS_PORT must be free): %w", err)
		}
		return listener, nil
	}
	file := os.NewFile(agentenv.ListenerFD, "the inherited listener")
	listener, err := net.FileListener(file)
	if err != nil { // then the descriptor is somebody else's, and stays open
		return nil, fmt.Errorf("listening for the function's runtime (WINDLASS_LISTENER_INHERITED needs a listener as file descriptor %d): %w", agentenv.ListenerFD, err)
	}
	// Who hands a listener over shares its machine with other users.
	return sameuser.Listen(listener), file.Close()
}

// serveRuntimeAPI serves the Runtime API until it is closed.
func serveRuntimeAPI(api *lambda.Adapter, listener net.Listener, broke func(error)) (closeIt func() error) {
	serving, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		err := api.Serve(serving, listener)
		if err != nil {
			broke(err)
		}
		served <- err
	}()
	return func() error { stop(); return <-served }
}
