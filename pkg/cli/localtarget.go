package cli

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/control"
	"github.com/windlass-dev/windlass/pkg/live"
	"github.com/windlass-dev/windlass/pkg/live/scrape"
)

// local is the Windlass of a data folder.
func (a *app) local(dataDir string) *target {
	l := &localWindlass{Client: control.NewClient(dataDir), dataDir: dataDir}
	return &target{registry: l, editor: l, logReader: l, storyteller: l, router: l, explainer: l, observatory: l, keyStore: l, namespace: v1alpha1.DefaultNamespace}
}

// localWindlass is what the control socket of a data folder offers.
type localWindlass struct {
	*control.Client
	dataDir string
}

// Prepare leaves it to Windlass to say what is wrong.
func (l *localWindlass) Prepare(fn *v1alpha1.Function) (apply, error) {
	return func(ctx context.Context) (control.Applied, error) { return l.Apply(ctx, fn) }, nil
}

func (l *localWindlass) Log(ctx context.Context, r logRequest) error {
	return l.Client.Log(ctx, r.out, r.key, r.follow, r.tail)
}

func (l *localWindlass) Route(ctx context.Context, fn *v1alpha1.Function) (*route, error) {
	if fn.Status.URL == "" {
		return nil, fmt.Errorf("function %s has no URL yet, because Windlass is starting; try again in a second", fn.Key())
	}
	info, err := l.Info(ctx)
	if err != nil {
		return nil, err
	}
	return &route{url: fn.Status.URL, key: info.Key, hint: "look at what windlass up prints", close: func() error { return nil }}, nil
}

// Historian asks over the control socket, which keeps no connection.
func (l *localWindlass) Historian() historian { return localHistorian{l.Client} }

type localHistorian struct{ *control.Client }

func (localHistorian) Close() error { return nil }

// Onlooker asks for metrics where they are for everybody, and for decisions over the
// control socket.
func (l *localWindlass) Onlooker(now func() time.Time) onlooker {
	return &localOnlooker{Client: l.Client, now: now, transport: &http.Transport{DisableKeepAlives: true}}
}

type localOnlooker struct {
	*control.Client
	now       func() time.Time
	transport *http.Transport
}

// Sample implements terminal.Source. Where to ask is asked each time: Windlass may
// have been started again.
func (o *localOnlooker) Sample(ctx context.Context) (live.Sample, error) {
	info, err := o.Info(ctx)
	if err != nil {
		return live.Sample{}, err
	}
	families, err := scrape.Metrics(ctx, o.transport, info.OpsURL+"/metrics")
	if err != nil {
		return live.Sample{}, fmt.Errorf("Windlass does not tell its metrics at %s: %w; see what windlass up prints", info.OpsURL, err)
	}
	latest, err := o.Latest(ctx)
	if err != nil {
		return live.Sample{}, err
	}
	source := fmt.Sprintf("process %d", info.PID)
	return live.Read(o.now(), []live.Reading{{Source: source, Families: families, Latest: latest.Functions}}), nil
}

func (*localOnlooker) Close() error { return nil }
