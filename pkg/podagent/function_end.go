package podagent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/core"
)

// FunctionEnd is how a function's process ended.
type FunctionEnd struct {
	// How is a text for people, such as "the function exited with status 3".
	How string
	// LastLines are the last lines that the function wrote.
	LastLines []string
}

// functionEnd is how the function's process has ended, once that is known.
type functionEnd struct {
	known chan struct{} // closed then
	once  sync.Once
	end   FunctionEnd // valid once it is known
}

func newFunctionEnd() *functionEnd { return &functionEnd{known: make(chan struct{})} }

// set keeps how the function ended. Only the first report counts.
func (f *functionEnd) set(end FunctionEnd) {
	f.once.Do(func() {
		f.end = end
		close(f.known)
	})
}

// lostError is the error of calls that ran when the function ended; nil while it runs, as far
// as is known.
func (f *functionEnd) lostError() error {
	select {
	case <-f.known:
		return &functionLost{f.end}
	default:
		return nil
	}
}

// how is how the function ended; empty while that is not known.
func (f *functionEnd) how() string {
	if f.lostError() == nil {
		return ""
	}
	return f.end.How
}

// functionLost is the error of a call that ran when the function ended.
type functionLost struct{ end FunctionEnd }

func (e *functionLost) Error() string {
	text := e.end.How + " in the middle of the call"
	if len(e.end.LastLines) > 0 {
		text += "; its last log lines:\n" + strings.Join(e.end.LastLines, "\n")
	}
	return text
}

func (e *functionLost) Unwrap() error { return adapter.ErrFunctionLost }

// awaitEnd waits for the function's end, or the agent's.
func (a *Agent) awaitEnd() {
	select {
	case <-a.ended:
	case end := <-a.deps.FunctionEnd:
		a.function.set(end)
		a.notify(core.FunctionEnded{Detail: end.How})
	}
}

// drainPath answers once the instance has drained.
const drainPath = "GET /drained"

// ServeDrained answers GET /drained on a listener as soon as the agent runs no
// call any more and takes none, until ctx ends. The function's preStop hook waits for that
// before the function is stopped. Asking changes nothing.
func (a *Agent) ServeDrained(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc(drainPath, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-a.drained:
		case <-r.Context().Done():
		}
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, MaxHeaderBytes: 4 << 10}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
