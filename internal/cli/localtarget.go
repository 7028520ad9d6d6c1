package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/internal/monitor/scrape"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// localTarget is the Windlass of a data folder.
func localTarget(dataDir string) *target {
	l := &localWindlass{Client: localapi.NewClient(dataDir), dataDir: dataDir}
	return &target{registry: l, editor: l, logReader: l, callLookup: l, router: l, decisionSource: l, snapshotSource: l, keyStore: l, namespace: v1alpha1.DefaultNamespace}
}

// localWindlass is what the control socket of a data folder offers.
type localWindlass struct {
	*localapi.Client
	dataDir string
}

// Prepare leaves validation to Windlass.
func (l *localWindlass) Prepare(fn *v1alpha1.Function) (apply, error) {
	return func(ctx context.Context, dryRun bool) (localapi.Applied, error) {
		if dryRun {
			return l.Preview(ctx, fn)
		}
		return l.Apply(ctx, fn)
	}, nil
}

// changeAttempts bounds how often others may be faster than a change.
const changeAttempts = 10

// Change reads the function, and applies the edited one unless it has changed since.
func (l *localWindlass) Change(ctx context.Context, key invocation.FunctionKey, edit func(*v1alpha1.Function) error, dryRun bool) (applied localapi.Applied, err error) {
	for range changeAttempts {
		applied, err = l.tryChange(ctx, key, edit, dryRun)
		if !isReason(err, localapi.ReasonConflict) {
			break
		}
	}
	return applied, err
}

func (l *localWindlass) tryChange(ctx context.Context, key invocation.FunctionKey, edit func(*v1alpha1.Function) error, dryRun bool) (localapi.Applied, error) {
	read, err := l.Get(ctx, key)
	if err != nil {
		return localapi.Applied{}, err
	}
	fn := read.DeepCopy()
	if err := edit(fn); err != nil {
		return localapi.Applied{}, err
	}
	if dryRun {
		return l.Preview(ctx, fn)
	}
	return l.Replace(ctx, read, fn)
}

func (l *localWindlass) Log(ctx context.Context, r logRequest) error {
	err := l.Client.Log(ctx, r.out, r.key, localapi.LogOptions{Follow: r.follow, Tail: r.tail, Since: r.since, Timestamps: r.timestamps})
	if err != nil || !r.follow || ctx.Err() != nil {
		return err
	}
	if _, err := l.Get(ctx, r.key); isNotFound(err) {
		fmt.Fprintf(r.notes, "function %s was deleted: its log ends here\n", r.key)
	} else if err != nil {
		fmt.Fprintln(r.notes, "Windlass has stopped: the log ends here")
	}
	return nil
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

// DecisionGetter asks over the control socket, which keeps no connection.
func (l *localWindlass) DecisionGetter() decisionGetter { return localDecisions{l.Client} }

type localDecisions struct{ *localapi.Client }

func (localDecisions) Close() error { return nil }

// Snapshotter scrapes the metrics, which are public, and asks for decisions over the control
// socket.
func (l *localWindlass) Snapshotter(now func() time.Time) snapshotter {
	return &localSnapshotter{Client: l.Client, now: now, transport: &http.Transport{DisableKeepAlives: true}}
}

type localSnapshotter struct {
	*localapi.Client
	now       func() time.Time
	transport *http.Transport
}

// Sample implements terminal.Source. It looks up the address each time, because Windlass may
// have been restarted.
func (o *localSnapshotter) Sample(ctx context.Context) (monitor.Sample, error) {
	info, err := o.Info(ctx)
	if err != nil {
		return monitor.Sample{}, err
	}
	families, err := scrape.Metrics(ctx, o.transport, info.OpsURL+"/metrics")
	if err != nil {
		return monitor.Sample{}, fmt.Errorf("this Windlass does not tell its metrics at %s: %w; see what windlass up prints", info.OpsURL, err)
	}
	latest, err := o.Latest(ctx)
	if err != nil {
		return monitor.Sample{}, err
	}
	source := fmt.Sprintf("process %d", info.PID)
	return monitor.Read(o.now(), []monitor.Reading{{Source: source, Node: localapi.NodeName, Families: families, Latest: latest}}), nil
}

func (*localSnapshotter) Close() error { return nil }

func (l *localWindlass) keysFile() string { return filepath.Join(l.dataDir, auth.KeysFileName) }

// ReadKeys reads the data folder; Windlass need not run.
func (l *localWindlass) ReadKeys(context.Context) ([]byte, error) {
	list, err := os.ReadFile(l.keysFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, inputError(fmt.Errorf("cannot read the list of keys: %w; check the rights of the data folder", err))
	}
	return list, nil
}

// EditKeys replaces the file atomically: a reader sees the old file or the new one. One edit
// waits for the other, or a key that one revokes would come back with the other's list.
func (l *localWindlass) EditKeys(ctx context.Context, edit func([]byte) ([]byte, error)) error {
	unlock, err := lockFile(l.keysFile() + ".lock")
	var locked *lockedError
	switch {
	case errors.As(err, &locked):
		return fmt.Errorf("cannot change the list of keys: %w", locked)
	case err != nil:
		return inputError(fmt.Errorf("cannot lock the list of keys: %w; check the rights of the data folder", err))
	}
	defer unlock()
	list, err := l.ReadKeys(ctx)
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	if err := replaceFile(l.keysFile(), list); err != nil {
		return inputError(fmt.Errorf("cannot write the list of keys: %w; check the rights of the data folder", err))
	}
	return nil
}

// replaceFile writes a file that only its owner may read.
func replaceFile(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name())
	_, err = next.Write(content)
	if err := errors.Join(err, next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}
