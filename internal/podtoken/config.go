package podtoken

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/windlass-dev/windlass/internal/jwks"
)

// Audience is the one that tokens for schedulers are requested for.
const Audience = "windlass-scheduler"

// Config is what a Verifier needs to know.
type Config struct {
	// Issuers are those whose tokens count. If there are none, every issuer
	// counts that has a key among the cluster's.
	Issuers []string
	// Audience is what a token must be for.
	Audience string
	// Leeway is how far the clock here may differ from the issuer's: 0 to 5
	// min. A token counts this much longer than it says.
	Leeway time.Duration
}

// DefaultConfig is the configuration of a scheduler.
func DefaultConfig() Config { return Config{Audience: Audience, Leeway: 30 * time.Second} }

// Validate says what is wrong with a Config.
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
	// Reviewer is asked about tokens whose keys cannot be had. Without one
	// they do not count.
	Reviewer Reviewer
	// Known tells whether a pod is one that runs here, by what a token says before it
	// is believed: strangers must not use up the reviews of these. Nil knows none.
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
