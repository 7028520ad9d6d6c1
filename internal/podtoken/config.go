package podtoken

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/windlass-dev/windlass/internal/jwks"
)

// Audience is the audience of tokens for schedulers.
const Audience = "windlass-scheduler"

// NodeAudience is the audience of tokens for node agents: schedulers accept none that a node agent
// has seen.
const NodeAudience = "windlass-node"

// Config is what a Verifier needs to know.
type Config struct {
	// Issuers are the trusted issuers. If there are none, every issuer with a key among the
	// cluster's is trusted.
	Issuers []string
	// Audience is what a token must be for.
	Audience string
	// Leeway is how far the clock here may differ from the issuer's: 0 to 5
	// min. A token counts this much longer than it says.
	Leeway time.Duration
}

// DefaultConfig is the configuration of a scheduler.
func DefaultConfig() Config { return Config{Audience: Audience, Leeway: 30 * time.Second} }

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	var errs []error
	if c.Audience == "" {
		errs = append(errs, errors.New("podtoken: Audience is empty: say what tokens are for"))
	}
	if c.Leeway < 0 || c.Leeway > 5*time.Minute {
		errs = append(errs, fmt.Errorf("podtoken: Leeway is %v: use 0s to 5m", c.Leeway))
	}
	return errors.Join(errs...)
}

// Deps are what a Verifier works with.
type Deps struct {
	// Keys reads the cluster's public keys.
	Keys jwks.KeySource
	// Reviewer checks tokens whose keys cannot be read. Without it such tokens are invalid.
	Reviewer Reviewer
	// Known reports whether a pod runs here, by the unverified content of its token: strangers
	// must not use up the reviews of such pods. nil knows none.
	Known func(podUID, namespace, name string) bool
	Log   *slog.Logger
	Now   func() time.Time
}

func (d Deps) validate() error {
	if d.Keys == nil || d.Log == nil || d.Now == nil {
		return errors.New("podtoken: Keys, Log or Now is nil: pass all three")
	}
	return nil
}
