package local

import (
	"context"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/internal/buildinfo"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/live"
	"github.com/windlass-dev/windlass/pkg/live/page"
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
func (o ownSample) Sample(context.Context) (live.Sample, error) {
	families, err := o.registry.Gather()
	if err != nil {
		return live.Sample{}, err
	}
	return live.Read(time.Now(), []live.Reading{{Source: nodeName, Families: families, Latest: o.Latest()}}), nil
}
