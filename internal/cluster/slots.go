package cluster

import (
	"context"
	"log/slog"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/etcd"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
)

// startSlots follows, for a gateway, who owns which slot and which schedulers
// answer. The channel is closed once that is known.
func startSlots(
	parts *lifecycle.Lifecycle, config GatewayConfig, schedulers credentials.TransportCredentials, registry *exposition.Registry, log *slog.Logger,
) (watched *health.Peers, known <-chan struct{}, err error) {
	client, err := newEtcd(config.Etcd, log)
	if err != nil {
		return nil, nil, err
	}
	parts.OnStop(func() { _ = client.Close() })
	directory, err := etcd.NewDirectory(config.Etcd.Prefix, etcd.Deps{Client: client, Log: log})
	if err != nil {
		return nil, nil, err
	}
	watched, err = health.New(health.Config{}, health.Deps{Directory: directory, Credentials: schedulers, Registry: registry, Log: log})
	if err != nil {
		return nil, nil, err
	}
	parts.Start("slot directory", directory.Run)
	parts.Start("slots from a scheduler", func(ctx context.Context) error {
		return askUntilKnown(ctx, directory, config.Schedulers, schedulers, log)
	})
	parts.Start("peers", watched.Run)
	return watched, directory.Ready(), nil
}

// askInterval is the pause between two tries to ask schedulers for the slots.
const askInterval = time.Second

// askUntilKnown asks any scheduler who owns which slot, if etcd does not say so soon.
func askUntilKnown(ctx context.Context, directory *etcd.Directory, addr string, creds credentials.TransportCredentials, log *slog.Logger) error {
	for pause := ownership.SeedAfter; ; pause = askInterval {
		select {
		case <-ctx.Done():
			return nil
		case <-directory.Ready():
			return nil
		case <-time.After(pause):
		}
		told, err := askForSlots(ctx, addr, creds)
		if err != nil {
			log.Warn("neither etcd nor a scheduler says who owns the slots", "schedulers", addr, "err", err)
			continue
		}
		log.Warn("etcd does not answer; a scheduler said who owns the slots", "schedulers", addr)
		directory.Seed(told)
	}
}

func askForSlots(ctx context.Context, addr string, creds credentials.TransportCredentials) (*ownership.Map, error) {
	conn, err := health.Dial(addr, creds)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(ctx, ownership.SeedAfter)
	defer cancel()
	return health.Fetch(ctx, conn)
}
