package local

import (
	"context"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/internal/monitor/page"
	"github.com/windlass-dev/windlass/internal/serve"
)

// operations are health checks and metrics, and the status page.
func (w *Windlass) operations() http.Handler {
	status := page.New(page.Config{Version: buildinfo.Version, GatewayURL: w.GatewayURL()}, ownSample{w}, time.Now)
	mux := http.NewServeMux()
	mux.Handle("/", w.guarded(serve.Operations(w.registry, w.unready)))
	for _, path := range page.Paths() {
		mux.Handle(path, status)
	}
	return mux
}

// ownSample tells what this process would tell others.
type ownSample struct{ *Windlass }

// Sample implements page.Source.
func (o ownSample) Sample(context.Context) (monitor.Sample, error) {
	families, err := o.registry.Gather()
	if err != nil {
		return monitor.Sample{}, err
	}
	return monitor.Read(time.Now(), []monitor.Reading{{Source: nodeName, Families: families, Latest: o.Latest()}}), nil
}
