package callers_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/pkg/callers"
)

// BenchmarkAuthenticate is what each call costs where an API key is required, and
// what a guess costs.
func BenchmarkAuthenticate(b *testing.B) {
	secret, key, err := callers.NewKey(callers.Scope{"team-a"}, time.Now(), 0)
	if err != nil {
		b.Fatal(err)
	}
	c, err := callers.New(
		callers.Config{Policy: callers.Policy{Auth: callers.Auth{Default: callers.Rule{Mode: callers.ModeRequired}}}, Keys: []callers.Key{key}, Gateways: 1},
		callers.Deps{Client: callers.NewClient(), Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler), Now: time.Now})
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
