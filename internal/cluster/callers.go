package cluster

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// CallersConfig has a gateway's settings about its callers.
type CallersConfig struct {
	// PolicyFile says who may call what, and how much; without it everybody may
	// call everything. KeysFile holds API keys, and need not exist.
	PolicyFile, KeysFile string
	// Gateways is how many gateways share the limits of a namespace.
	Gateways int
}

func (c *CallersConfig) flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.PolicyFile, "policy-file", "", "`file` that says who may call and how much; everybody by default")
	flags.StringVar(&c.KeysFile, "keys-file", "", "`file` with API keys; it may appear later")
	flags.IntVar(&c.Gateways, "gateways", 1, "`number` of gateways that share the limits of a namespace")
}

func (c CallersConfig) validate() []error {
	if c.Gateways < 1 {
		return []error{fmt.Errorf("--gateways %d must be at least 1", c.Gateways)}
	}
	return nil
}

// newCallers reads what says who may call.
func newCallers(c CallersConfig, registry prometheus.Registerer, log *slog.Logger) (*auth.Callers, error) {
	who, err := auth.New(
		auth.Config{PolicyFile: c.PolicyFile, Policy: auth.Everybody(), KeysFile: c.KeysFile, Gateways: c.Gateways},
		auth.Deps{Client: auth.NewClient(), Registry: registry, Log: log, Now: time.Now},
	)
	if err != nil {
		return nil, fmt.Errorf("--policy-file %q, --keys-file %q: %w", c.PolicyFile, c.KeysFile, err)
	}
	return who, nil
}
