package auth

import (
	"context"
	"log/slog"
	"sync"
)

// keyRefreshers keep the keys of the current issuers fresh.
type keyRefreshers struct {
	log     *slog.Logger
	running sync.WaitGroup
	stops   map[*issuer]context.CancelFunc
}

func newKeyRefreshers(log *slog.Logger) *keyRefreshers {
	return &keyRefreshers{log: log, stops: make(map[*issuer]context.CancelFunc)}
}

// keepFresh starts and stops refreshers so that exactly these issuers have one, until ctx
// ends.
func (k *keyRefreshers) keepFresh(ctx context.Context, all issuers) {
	for one, stop := range k.stops {
		if all[one.policy.Issuer] != one {
			stop()
			delete(k.stops, one)
		}
	}
	for _, one := range all {
		if k.stops[one] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(ctx)
		k.stops[one] = cancel
		k.running.Go(func() {
			_ = one.keys.Run(ctx, func(err error) {
				k.log.Warn("the keys of an issuer could not be read; those read before count for 24 hours", "issuer", one.policy.Name, "err", err)
			})
		})
	}
}

// stop stops all refreshers and waits for them.
func (k *keyRefreshers) stop() {
	for _, stop := range k.stops {
		stop()
	}
	k.running.Wait()
}
