package embeddedetcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
)

const (
	// A server that is alone becomes the leader within an election timeout,
	// which is most of the time that it takes to start. Shorter ticks would
	// show as load of an idle process; these cost some 0.3 % of a core.
	tickMs     = 20
	electionMs = 5 * tickMs

	// quotaBytes bounds the data. What Windlass keeps is some 200 KiB, and
	// every revision counts until it is compacted.
	quotaBytes = 64 << 20
	// keepRevisions is how many revisions stay readable; a watch that is
	// further behind must list again.
	keepRevisions = "10000"

	// walSegmentBytes of disk are set aside twice.
	walSegmentBytes = 1 << 20
)

// Config of a Server.
type Config struct {
	// Dir is the folder for etcd's files. It is made if it does not exist.
	// It must be of this server alone: what an earlier one left in it is
	// removed at the start.
	Dir string
	// Log gets what etcd reports at level warn and above.
	Log *slog.Logger
}

// Validate says what is wrong with a Config.
func (c Config) Validate() error {
	if c.Dir == "" {
		return errors.New("embeddedetcd: Dir is empty: name a folder for etcd's files")
	}
	if c.Log == nil {
		return errors.New("embeddedetcd: Log is nil: pass a logger")
	}
	return nil
}

// Server is a running etcd.
type Server struct {
	etcd   *embed.Etcd
	client *clientv3.Client
	close  func()
}

// Start starts an empty etcd and returns when it answers. It gives up when ctx
// ends; afterwards ctx means nothing to the server.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := wipe(cfg.Dir); err != nil {
		return nil, err
	}
	shrinkSegments()

	// While it starts, etcd warns about listeners and tokens that are not in
	// use here; an error is news at any time.
	level := zap.NewAtomicLevelAt(zap.ErrorLevel)
	etcd, err := embed.StartEtcd(settings(cfg.Dir, zap.New(newBridge(cfg.Log, level))))
	if err != nil {
		return nil, fmt.Errorf("embeddedetcd: starting etcd in %s: %w", cfg.Dir, err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
	case <-etcd.Server.StopNotify():
		etcd.Close()
		return nil, fmt.Errorf("embeddedetcd: etcd in %s stopped while it started: see its log", cfg.Dir)
	case <-ctx.Done():
		etcd.Close()
		return nil, fmt.Errorf("embeddedetcd: waiting for etcd in %s to be ready: %w", cfg.Dir, ctx.Err())
	}
	level.SetLevel(zap.WarnLevel)

	s := &Server{etcd: etcd, client: v3client.New(etcd.Server)}
	s.close = sync.OnceFunc(func() {
		// A client without a connection has nothing to report but that it is
		// closed now.
		_ = s.client.Close()
		s.etcd.Close()
	})
	return s, nil
}

// Client returns the server's client. It is shared, and Close closes it. A
// request to a closed server fails; it does not wait.
func (s *Server) Client() *clientv3.Client { return s.client }

// Close ends the server and returns when it has ended. Its files stay.
func (s *Server) Close() { s.close() }

// wipe makes dir, without what an earlier etcd left there. Whatever else
// somebody keeps in that folder is not ours to remove.
func wipe(dir string) error {
	if err := os.RemoveAll(filepath.Join(dir, "member")); err != nil {
		return fmt.Errorf("embeddedetcd: removing the files of an earlier etcd: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("embeddedetcd: making the folder for etcd's files: %w", err)
	}
	return nil
}

var shrinkSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = walSegmentBytes })

func settings(dir string, log *zap.Logger) *embed.Config {
	// A member must have addresses, though nobody listens at these: other
	// members would use them, and there are none.
	nowhere := []url.URL{{Scheme: "unix", Host: "in-process:0"}}

	cfg := embed.NewConfig()
	cfg.Name = "windlass"
	cfg.Dir = dir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log)
	cfg.ListenPeerUrls = nil
	cfg.ListenClientUrls = nil
	cfg.EnableGRPCGateway = false
	cfg.AdvertisePeerUrls = nowhere
	cfg.AdvertiseClientUrls = nowhere
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.TickMs = tickMs
	cfg.ElectionMs = electionMs
	cfg.UnsafeNoFsync = true
	cfg.QuotaBackendBytes = quotaBytes
	cfg.AutoCompactionMode = embed.CompactorModeRevision
	cfg.AutoCompactionRetention = keepRevisions
	return cfg
}
