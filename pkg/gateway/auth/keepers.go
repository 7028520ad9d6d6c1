package auth

import (
	"context"
	"log/slog"
	"sync"
)

// keepers keep the keys of issuers fresh, those that count now and no others.
type keepers struct {
	log     *slog.Logger
	running sync.WaitGroup
	stops   map[*issuer]context.CancelFunc
}

func newKeepers(log *slog.Logger) *keepers {
	return &keepers{log: log, stops: make(map[*issuer]context.CancelFunc)}
}

// keep starts and stops what it takes to keep just these fresh, until ctx ends.
func (k *keepers) keep(ctx context.Context, all issuers) {
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

// stop returns when none runs any more.
func (k *keepers) stop() {
	for _, stop := range k.stops {
		stop()
	}
	k.running.Wait()
}
