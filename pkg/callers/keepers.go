package callers

import (
	"context"
	"log/slog"
	"sync"
)

// keepers keep the keys of issuers fresh, those that count now and no others.
type keepers struct {
	ctx     context.Context
	log     *slog.Logger
	running sync.WaitGroup
	stops   map[*issuer]context.CancelFunc
}

func newKeepers(ctx context.Context, log *slog.Logger) *keepers {
	return &keepers{ctx: ctx, log: log, stops: make(map[*issuer]context.CancelFunc)}
}

// keep starts and stops what it takes to keep just these fresh.
func (k *keepers) keep(all issuers) {
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
		ctx, cancel := context.WithCancel(k.ctx)
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
	k.keep(nil)
	k.running.Wait()
}
