package local

import (
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/pkg/callers"
	"github.com/windlass-dev/windlass/pkg/gateway"
)

// requireKeys makes Windlass require API keys, and makes one that counts for as
// long as it runs.
func (w *Windlass) requireKeys() error {
	secret, key, err := callers.NewKey(callers.Scope{"*"}, time.Now(), 0)
	if err != nil {
		return err
	}
	w.key = secret
	w.callers, err = callers.New(
		callers.Config{
			Policy:   callers.Policy{Auth: callers.Auth{Default: callers.Rule{Mode: callers.ModeRequired}}},
			KeysFile: filepath.Join(w.config.DataDir, callers.KeysFileName), Keys: []callers.Key{key}, Gateways: 1,
		},
		callers.Deps{Client: callers.NewClient(), Registry: w.registry, Log: w.log, Now: time.Now},
	)
	return err
}

// guard is who says who may call, or nobody.
func (w *Windlass) guard() gateway.Callers {
	if w.callers == nil {
		return nil
	}
	return w.callers
}
