package etcd

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/windlass-dev/windlass/pkg/ownership"
)

// Config has the settings of a Coordinator.
type Config struct {
	// ID names the scheduler. Of two running ones with the same ID, the one
	// that started later takes the slots.
	ID string
	// Addr is where gateways and agents reach the scheduler, host:port.
	Addr string
	// Prefix of all keys in etcd, such as /windlass/production. All schedulers and gateways of
	// one cluster use the same.
	Prefix string
	// TTL is how long etcd keeps the slots of a scheduler that does not renew its lease: 1 s
	// to 10 min, rounded up to whole seconds. etcd may keep them longer.
	TTL time.Duration
	// Settle is how long a starting Coordinator waits for others before it claims slots, 0 to
	// 10 s. It may wait several times that long if they come one after the other.
	Settle time.Duration
}

// Validate returns an error that names the invalid settings.
func (c Config) Validate() error {
	if c.ID == "" || strings.Contains(c.ID, "/") {
		return fmt.Errorf("etcd: ID is %q: give the scheduler a name without slashes", c.ID)
	}
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("etcd: Addr is %q: write host:port: %w", c.Addr, err)
	}
	if c.TTL < time.Second || c.TTL > 10*time.Minute {
		return fmt.Errorf("etcd: TTL is %s: use 1s to 10m", c.TTL)
	}
	if c.Settle < 0 || c.Settle > 10*time.Second {
		return fmt.Errorf("etcd: Settle is %s: use 0s to 10s", c.Settle)
	}
	return validatePrefix(c.Prefix)
}

func validatePrefix(prefix string) error {
	if len(prefix) < 2 || !strings.HasPrefix(prefix, "/") || strings.HasSuffix(prefix, "/") {
		return fmt.Errorf("etcd: Prefix is %q: begin with a slash and end without one, as in /windlass", prefix)
	}
	return nil
}

// Deps are the parts that a Coordinator and a Directory use.
type Deps struct {
	// Client is shared and stays open.
	Client *clientv3.Client
	// Busy reports whether a slot carries work, so that the Coordinator hands it off with
	// care. It must not wait for anything that waits for the Coordinator. nil means that no
	// slot does.
	Busy func(ownership.Slot) bool
	// ReportedOwner returns a slot's owner as reported by others, such as by a Directory. It
	// must not wait for anything that waits for the Coordinator. nil means that others are not
	// asked.
	ReportedOwner func(ownership.Slot) (ownership.Owner, bool)
	Log           *slog.Logger
}

func (d Deps) validate() error {
	if d.Client == nil || d.Log == nil {
		return errors.New("etcd: Client or Log is nil: pass both")
	}
	return nil
}
