package auth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/internal/jwks"
	"github.com/windlass-dev/windlass/internal/metric"
)

// files reads policy and keys. It compares contents and not times of change, which a mounted
// Secret does not show.
type files struct {
	config Config
	deps   Deps
	// reloaded says whether the last look could be read, and reloadedAt when what counts was.
	reloaded, reloadedAt prometheus.Gauge
	// unknown is how much of the files this release does not know.
	unknown prometheus.Gauge
	// last is what the files held when they were read last; nil if they could
	// not be.
	last *contents
}

// contents are the files' contents; empty for a missing file.
type contents struct{ policy, keys string }

func newFiles(config Config, deps Deps) *files {
	f := &files{config: config, deps: deps, reloaded: reloadedDecl.New(), reloadedAt: reloadedAtDecl.New(), unknown: unknownDecl.New()}
	deps.Registry.MustRegister(f.reloaded, f.reloadedAt, f.unknown)
	return f
}

// read returns the state from now on. changed says that the files differ from the last read.
// Unchanged issuers keep their cached keys.
func (f *files) read(before *state) (_ *state, changed bool, err error) {
	now, err := f.contents()
	switch {
	case err != nil:
		changed, f.last = f.last != nil, nil
	case before != nil && f.last != nil && *f.last == now:
		return before, false, nil
	default:
		changed, f.last = true, &now
		before, err = f.parse(now, before)
	}
	if err != nil {
		f.reloaded.Set(0)
		return nil, changed, err
	}
	f.reloaded.Set(1)
	f.reloadedAt.Set(float64(f.deps.Now().Unix()))
	return before, true, nil
}

func (f *files) contents() (contents, error) {
	var policy, keys []byte
	var err error
	if f.config.PolicyFile != "" {
		if policy, err = os.ReadFile(f.config.PolicyFile); err != nil {
			return contents{}, fmt.Errorf("callers: read the policy: %w", err)
		}
	}
	if f.config.KeysFile != "" {
		if keys, err = os.ReadFile(f.config.KeysFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return contents{}, fmt.Errorf("callers: read the list of keys: %w", err)
		}
	}
	return contents{string(policy), string(keys)}, nil
}

func (f *files) parse(now contents, before *state) (*state, error) {
	next := &state{policy: f.config.Policy}
	var unknown []string
	var err error
	if f.config.PolicyFile != "" {
		if next.policy, unknown, err = ReadPolicy([]byte(now.policy)); err != nil {
			return nil, fmt.Errorf("callers: the policy is wrong: %w", err)
		}
	}
	list, more, err := ReadKeys([]byte(now.keys))
	if err != nil {
		return nil, fmt.Errorf("callers: the list of keys is wrong: %w", err)
	}
	f.reportUnknown(append(unknown, more...))
	list.Keys = append(list.Keys, f.config.Keys...)
	next.keys = list.index()
	next.issuers = make(issuers, len(next.policy.Auth.Issuers))
	for _, policy := range next.policy.Auth.Issuers {
		next.issuers[policy.Issuer] = f.issuer(policy, before)
	}
	return next, nil
}

// maxReportedUnknown is how many entries a log line names.
const maxReportedUnknown = 10

// reportUnknown counts and logs what the files contain that this release does not know.
func (f *files) reportUnknown(unknown []string) {
	f.unknown.Set(float64(len(unknown)))
	if len(unknown) > 0 {
		f.deps.Log.Warn("who may call says what this release does not know: fields mean nothing, and values let nobody in",
			"entries", len(unknown), "unknown", unknown[:min(len(unknown), maxReportedUnknown)])
	}
}

// issuer is the previous issuer if the policy about it has not changed, and otherwise a new
// one.
func (f *files) issuer(policy Issuer, before *state) *issuer {
	if before != nil {
		if same := before.issuers[policy.Issuer]; same != nil && reflect.DeepEqual(same.policy, policy) {
			return same
		}
	}
	fresh := &issuer{policy: policy}
	var source jwks.KeySource = &keysAtURL{client: f.deps.Client, url: policy.JWKSURL}
	if policy.JWKSFile != "" {
		path := policy.JWKSFile
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(f.config.PolicyFile), path)
		}
		fresh.file = keysInFile(path)
		fresh.document, _ = os.ReadFile(path)
		source = fresh.file
	}
	fresh.keys = jwks.NewKeyring(source, jwksMinInterval, f.deps.Now).MayBeEmpty()
	return fresh
}

// refreshKeys reads the keys of issuers again whose file of keys has changed.
func (f *files) refreshKeys(ctx context.Context, all issuers) {
	for _, one := range all {
		if one.file == "" {
			continue
		}
		document, err := os.ReadFile(string(one.file))
		if err != nil || bytes.Equal(document, one.document) {
			continue
		}
		one.document = document
		if err := one.keys.Refresh(ctx); err != nil {
			f.deps.Log.Error("the keys of an issuer could not be read again; those read before count for 24 hours", "issuer", one.policy.Name, "err", err)
		}
	}
}

// maxKeySet is the longest document of keys that is read, in bytes.
const maxKeySet = 1 << 20

// keysAtURL reads an issuer's keys.
type keysAtURL struct {
	client *http.Client
	url    string
}

// Keys implements tokens.KeySource.
func (k *keysAtURL) Keys(ctx context.Context) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, k.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := k.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("callers: %s answered %s", k.url, resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxKeySet))
}

// NewClient makes a client for reading issuers' keys. It follows no redirect, because only the
// addresses in the policy are trusted.
func NewClient() *http.Client {
	return &http.Client{
		Timeout:       10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// keysInFile is the path of an issuer's keys.
type keysInFile string

// Keys implements tokens.KeySource.
func (path keysInFile) Keys(context.Context) ([]byte, error) { return os.ReadFile(string(path)) }

// Metrics declares the metrics of a gateway about callers.
var Metrics metric.Set

var (
	reloadedDecl = Metrics.Gauge(metric.Stable, "windlass_gateway_policy_last_reload_successful",
		"1 if the last reload of the policy and the API keys succeeded. 0 if it failed and the gateway still uses the previous ones.")
	reloadedAtDecl = Metrics.Gauge(metric.Stable, "windlass_gateway_policy_last_reload_success_timestamp_seconds",
		"Unix time of the last successful reload of the policy and the API keys.")
	unknownDecl = Metrics.Gauge(metric.Experimental, "windlass_gateway_policy_unknown_entries",
		"Entries of the policy and the API keys that this release does not know. It ignores unknown fields, and unknown values give nobody access.")
)
