package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
)

// Names of the roles, which are also those of their folders of certificates.
const (
	schedulerRole = "scheduler"
	gatewayRole   = "gateway"
)

// domain is that of the names in the certificates.
const domain = mtls.Domain("density.windlass")

// roleFlags are those of a process that this command starts; people do not give them.
type roleFlags struct{ role, dir, scheduler string }

const (
	roleFlag      = "role"
	dirFlag       = "dir"
	schedulerFlag = "scheduler"
)

func (r *roleFlags) add(to *flag.FlagSet) {
	to.StringVar(&r.role, roleFlag, "", "used by this command itself: be the scheduler or the gateway")
	to.StringVar(&r.dir, dirFlag, "", "used by this command itself: `folder` of functions and certificates")
	to.StringVar(&r.scheduler, schedulerFlag, "", "used by this command itself: `address` of the scheduler")
}

// functionsDir is the folder of functions, and certificatesDir that of a role's certificates.
func functionsDir(dir string) string          { return filepath.Join(dir, "functions") }
func certificatesDir(dir, role string) string { return filepath.Join(dir, "certificates", role) }

// program is a gateway or a scheduler.
type program struct {
	registry *exposition.Registry
	parts    *lifecycle.Lifecycle
	log      *slog.Logger
	// tls is nil without TLS.
	tls     *mtls.Credentials
	catalog *catalog.Catalog
	dir     string
	// source is what has filled the catalog. It stays, as the informers of a cluster do.
	source atomic.Pointer[file.Store]
}

// runRole is a role until in ends.
func runRole(ctx context.Context, in io.Reader, out io.Writer, r roleFlags) error {
	ctx = peers.UntilEnd(ctx, in)
	p := &program{
		registry: exposition.NewRegistry(), parts: lifecycle.New(), catalog: catalog.New(), dir: r.dir,
		log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	p.registry.MustRegister(collectors.NewGoCollector())
	defer p.parts.Stop()
	ready, err := p.start(r, json.NewEncoder(out))
	if err != nil {
		return err
	}
	if ready.Ops, err = p.serveControl(); err != nil {
		return err
	}
	if err := ready.Print(out); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-p.parts.Failed():
		return err
	}
}

// start starts the parts of a role. A scheduler's orders go to the parent.
func (p *program) start(r roleFlags, parent *json.Encoder) (ready peers.Ready, err error) {
	if _, err = os.Stat(certificatesDir(r.dir, r.role)); err == nil {
		if p.tls, err = mtls.Load(certificatesDir(r.dir, r.role), p.log); err != nil {
			return ready, err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return ready, err
	}
	switch r.role {
	case schedulerRole:
		return p.startScheduler(parent)
	case gatewayRole:
		return p.startGateway(r.scheduler)
	}
	return ready, fmt.Errorf("there is no role %q", r.role)
}

// serveControl serves what the parent asks, and returns where.
func (p *program) serveControl() (url string, err error) {
	l, err := peers.Listen()
	if err != nil {
		return "", err
	}
	mux := http.NewServeMux()
	answer := func(pattern string, with func() (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			value, err := with()
			if err == nil {
				err = json.NewEncoder(w).Encode(value)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})
	}
	answer("POST /functions", func() (any, error) { return p.addFunctions() })
	answer("GET /memory", func() (any, error) { return readMemory() })
	answer("GET /cpu", func() (any, error) { return readCPU() })
	answer("GET /loans", func() (any, error) { return p.loans() })
	p.parts.Start("control", func(ctx context.Context) error { return serve.HTTP(ctx, l, serve.Profiles(mux), 0, p.log) })
	return peers.URLOf(l), nil
}

// addFunctions adds the folder's functions to the catalog, and returns how many there are.
func (p *program) addFunctions() (int, error) {
	store, err := file.OpenInto(functionsDir(p.dir), p.catalog)
	if err != nil {
		return 0, err
	}
	p.source.Store(store)
	return len(store.List()), nil
}

// loans is how many places are lent, by the scheduler's metric.
func (p *program) loans() (int, error) {
	families, err := p.registry.Gather()
	sum := 0.0
	for _, f := range families {
		if f.GetName() == "windlass_scheduler_loans" {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue()
			}
		}
	}
	return int(sum), err
}
