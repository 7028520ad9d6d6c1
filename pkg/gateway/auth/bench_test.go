package auth_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/gateway/auth"
)

// BenchmarkAuthenticate is what each call costs where an API key is required, and
// what a guess costs.
func BenchmarkAuthenticate(b *testing.B) {
	secret, key, err := auth.NewKey(auth.Scope{"team-a"}, time.Now(), 0)
	if err != nil {
		b.Fatal(err)
	}
	c, err := auth.New(
		auth.Config{Policy: auth.Policy{Auth: auth.Auth{Default: auth.Rule{Mode: auth.ModeRequired}}}, Keys: []auth.Key{key}, Gateways: 1},
		auth.Deps{Client: auth.NewClient(), Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	for name, shown := range map[string]string{"good": secret, "guessed": secret[:len(secret)-1] + "x"} {
		h := withKey(shown)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = c.Authenticate(h, fn("team-a/f"))
			}
		})
	}
}
