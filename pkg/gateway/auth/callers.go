package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// reloadInterval is how often the files are read again.
	reloadInterval = 2 * time.Second
	// refusalLogInterval is the shortest time between two log lines about refused callers,
	// of whom there may be any number.
	refusalLogInterval = time.Second
)

// Config is what Callers need to know.
type Config struct {
	// PolicyFile is the policy. If it is empty, Policy counts.
	PolicyFile string
	Policy     Policy
	// KeysFile is the list of API keys; it need not exist. Keys count besides.
	KeysFile string
	Keys     []Key
	// Gateways is how many gateways share the limits of a namespace; at least 1.
	Gateways int
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	errs := []error{KeyList{Keys: c.Keys}.validate()}
	if c.Gateways < 1 {
		errs = append(errs, fmt.Errorf("callers: Gateways is %d: must be at least 1", c.Gateways))
	}
	if c.PolicyFile == "" {
		errs = append(errs, c.Policy.Validate())
	}
	return errors.Join(errs...)
}

// Deps are what Callers work with.
type Deps struct {
	// Client reads issuers' keys.
	Client   *http.Client
	Registry prometheus.Registerer
	Log      *slog.Logger
	Now      func() time.Time
}

// Callers identifies callers, and says whether they may call and how much. It is for
// concurrent use.
type Callers struct {
	config      Config
	deps        Deps
	files       *files
	now         atomic.Pointer[state]
	logRefusals rate.Sometimes
}

// New makes Callers of what the files hold now. It starts nothing; without Run,
// what changes in the files later does not count.
func New(config Config, deps Deps) (*Callers, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	c := &Callers{config: config, deps: deps, files: newFiles(config, deps), logRefusals: rate.Sometimes{Interval: refusalLogInterval}}
	first, _, err := c.files.read(nil)
	if err != nil {
		return nil, err
	}
	c.now.Store(first)
	return c, nil
}

// Authenticate identifies the caller and decides whether it may call the function of that
// name, which need not exist. It fails with ErrMissing, ErrInvalid, ErrNotAllowed or
// ErrUnavailable. It waits only for the keys of an issuer.
func (c *Callers) Authenticate(h http.Header, key invocation.FunctionKey) (Caller, error) {
	caller, err := c.now.Load().authenticate(h, key, c.deps.Now())
	if err != nil {
		c.logRefusals.Do(func() {
			c.deps.Log.Warn("a caller was refused; there may be more than are logged", "namespace", key.Namespace, "err", err)
		})
	}
	return caller, err
}

// Limits are what a namespace may use of this gateway.
func (c *Callers) Limits(namespace string) admission.Limits {
	return c.now.Load().policy.limits(namespace).Share(c.config.Gateways)
}

// Permits reports whether functions of a namespace may have a host of their own.
func (c *Callers) Permits(namespace, host string) bool {
	return c.now.Load().policy.Permits(namespace, host)
}

// Run follows the files and keeps issuers' keys fresh until ctx ends.
func (c *Callers) Run(ctx context.Context) error {
	keepers := newKeyRefreshers(c.deps.Log)
	defer keepers.stop()
	tick := time.NewTicker(reloadInterval)
	defer tick.Stop()
	for {
		keepers.keepFresh(ctx, c.now.Load().issuers)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		c.files.refreshKeys(ctx, c.now.Load().issuers)
		next, changed, err := c.files.read(c.now.Load())
		switch {
		case err != nil && changed:
			c.deps.Log.Error("who may call could not be read again; what was read before still counts", "err", err)
		case err == nil && changed:
			c.now.Store(next)
			c.deps.Log.Info("who may call has changed", "namespaces", len(next.policy.Auth.Namespaces), "issuers", len(next.issuers), "keys", len(next.keys))
		}
	}
}
