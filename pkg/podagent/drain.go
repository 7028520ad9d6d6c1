package podagent

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// drainPath is what answers once the instance has ended its calls.
const drainPath = "GET /drained"

// ServeDrained answers GET /drained on a listener as soon as the agent runs no
// call any more and takes none, until ctx ends: whoever is about to stop the
// function waits for that. To ask changes nothing.
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
