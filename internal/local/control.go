package local

import (
	"context"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/internal/monitor/page"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner/process/instancelog"
)

// Info describes this Windlass.
func (w *Windlass) Info() localapi.Info {
	return localapi.Info{
		Version:    buildinfo.Version,
		GatewayURL: w.GatewayURL(),
		OpsURL:     w.OpsURL(),
		DataDir:    w.config.DataDir,
		PID:        os.Getpid(),
		Key:        w.key,
	}
}

// controlAPI is what the other verbs of the command talk to.
func (w *Windlass) controlAPI() http.Handler {
	return localapi.New(localapi.Deps{
		Info:         w.Info(),
		Store:        w.store,
		Reader:       w.store,
		StatusReader: w,
		Archive:      w.rollouts,
		Logs:         instanceLogs(w.config.DataDir),
		Decisions:    w,
		CallLookup:   w.callLog,
	})
}

// instanceLogs prints the logs below a data folder.
type instanceLogs string

// Follow implements control.Logs.
func (dir instanceLogs) Follow(ctx context.Context, w io.Writer, key invocation.FunctionKey, options localapi.LogOptions) error {
	return instancelog.Follow(ctx, w, string(dir), key, instancelog.Options(options))
}

// operations are health checks and metrics, and the status page.
func (w *Windlass) operations() http.Handler {
	status := page.New(page.Config{Version: buildinfo.Version, GatewayURL: w.GatewayURL()}, ownSample{w}, time.Now)
	mux := http.NewServeMux()
	checks := serve.Operations(w.registry, w.unready)
	if w.config.Pprof {
		checks = serve.Profiles(checks)
	}
	mux.Handle("/", w.guarded(checks))
	for _, path := range page.Paths() {
		mux.Handle(path, status)
	}
	return mux
}

// ownSample reads this process's own metrics and decisions.
type ownSample struct{ *Windlass }

// Sample implements page.Source.
func (o ownSample) Sample(context.Context) (monitor.Sample, error) {
	families, err := o.registry.Gather()
	if err != nil {
		return monitor.Sample{}, err
	}
	return monitor.Read(time.Now(), []monitor.Reading{{Source: nodeName, Node: nodeName, Families: families, Latest: o.Latest()}}), nil
}
