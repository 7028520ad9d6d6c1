package local

import (
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// requireKeys makes Windlass require API keys, and makes one that counts for as
// long as it runs.
func (w *Windlass) requireKeys() error {
	secret, key, err := auth.NewKey(auth.Scope{"*"}, time.Now(), 0)
	if err != nil {
		return err
	}
	w.key = secret
	w.callers, err = auth.New(
		auth.Config{
			Policy:   auth.Policy{Auth: auth.Auth{Default: auth.Rule{Mode: auth.ModeRequired}}},
			KeysFile: filepath.Join(w.config.DataDir, auth.KeysFileName), Keys: []auth.Key{key}, Gateways: 1,
		},
		auth.Deps{Client: auth.NewClient(), Registry: w.registry, Log: w.log, Now: time.Now},
	)
	return err
}

// callerPolicy decides who may call; nil if anybody may.
func (w *Windlass) callerPolicy() gateway.Callers {
	if w.callers == nil {
		return nil
	}
	return w.callers
}
