package local

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/local/embeddedetcd"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// testConfig is of a Windlass with a data folder and addresses of its own, whose instances have no
// agent.
func testConfig(t *testing.T) Config {
	t.Helper()
	// The names of tests are too long for the path of a socket.
	dir, err := os.MkdirTemp("", "local")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := DefaultConfig()
	config.DataDir, config.AgentPath = dir, os.Args[0]
	config.Listen, config.OpsListen = "127.0.0.1:0", "127.0.0.1:0"
	return config
}

// onRecord is a log that hands over what is logged.
type onRecord func(slog.Record)

func (on onRecord) Enabled(context.Context, slog.Level) bool { return true }

func (on onRecord) Handle(_ context.Context, r slog.Record) error {
	on(r)
	return nil
}

func (on onRecord) WithAttrs([]slog.Attr) slog.Handler { return on }

func (on onRecord) WithGroup(string) slog.Handler { return on }

// slotsLost is how many slots a record says that were lost.
func slotsLost(r slog.Record) (lost int64) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "lost" {
			lost = a.Value.Int64()
		}
		return true
	})
	return lost
}

// The slots are released after the instances have ended and before etcd has. A Windlass that got
// the data folder then would remove the files of that etcd.
func TestTheDataFolderIsInUseUntilEtcdHasEnded(t *testing.T) {
	config := testConfig(t)
	open := func() error {
		w, err := Open(config, slog.New(slog.DiscardHandler))
		if err == nil {
			w.Close()
		}
		return err
	}
	tried := make(chan error, 1)
	_, stop, err := Start(config, slog.New(onRecord(func(r slog.Record) {
		if slotsLost(r) > 0 && len(tried) == 0 {
			tried <- open()
		}
	})))
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-tried:
		if err == nil || !strings.Contains(err.Error(), "in use") {
			t.Errorf("while etcd runs, another Windlass gets the data folder: %v", err)
		}
	default:
		t.Error("no slot was released")
	}
	if err := open(); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

// What reads a project's files leaves this folder out if it is among them.
func TestADataFolderIsKnownFromItsStart(t *testing.T) {
	config := testConfig(t)
	w, err := Open(config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	if !file.IsDataFolder(config.DataDir) {
		t.Errorf("%s is not known for a data folder", config.DataDir)
	}
}

// nameInstance returns the name of the first instance of a Windlass that runs with this config.
func nameInstance(t *testing.T, config Config) invocation.CID {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	w, err := Open(config, log)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	server, err := embeddedetcd.Start(t.Context(), embeddedetcd.Config{Dir: filepath.Join(config.DataDir, "etcd"), Log: log})
	if err != nil {
		t.Fatal(err)
	}
	parts := lifecycle.New()
	defer parts.Stop()
	parts.OnStop(server.Close)
	owned, err := w.startOwnership(t.Context(), parts, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	epoch, held := owned.Epoch(0)
	if !held {
		t.Fatal("the slot is not held")
	}
	return "00001-" + invocation.Term{Epoch: epoch}.CID(1)
}

// Each run begins with an empty etcd, which counts as the one before has.
func TestACallHasNoLinesOfAnEarlierRun(t *testing.T) {
	config := testConfig(t)
	for _, line := range []string{"of the first run", "of the second run", "of the third run"} {
		cid := nameInstance(t, config)
		calls := newCallLogHarnessIn(t, config.DataDir)
		calls.says(cid, line)
		calls.tells(calls.ended(cid, 0, 10), line)
	}
}
