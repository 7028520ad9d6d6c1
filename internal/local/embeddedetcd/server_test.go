package embeddedetcd

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, dir string) *Server {
	t.Helper()
	s, err := Start(t.Context(), Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestItAnswersAndWatches(t *testing.T) {
	client := start(t, t.TempDir()).Client()
	put, err := client.Put(t.Context(), "/a", "1")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := client.Watch(ctx, "/a", clientv3.WithRev(put.Header.Revision))
	answer := <-watch
	if len(answer.Events) != 1 || string(answer.Events[0].Kv.Value) != "1" {
		t.Errorf("the watch says %+v, want the value 1", answer)
	}
}

func TestItStartsEmptyInAFolderOfAnEarlierOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "it")
	earlier := start(t, dir)
	if _, err := earlier.Client().Put(t.Context(), "/a", "1"); err != nil {
		t.Fatal(err)
	}
	earlier.Close()
	theirs := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(theirs, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := start(t, dir).Client().Get(t.Context(), "/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Kvs) != 0 {
		t.Errorf("it starts with %v, want nothing", got.Kvs)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("it removed a file that is not etcd's: %v", err)
	}
}

func TestItsFilesAreForItsUserAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "etcd")
	start(t, dir)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("the folder's mode is %o, want 700", got)
	}
}

func TestItListensNowhere(t *testing.T) {
	before := sockets(t)
	s := start(t, t.TempDir())
	if _, err := s.Client().Put(t.Context(), "/a", "1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, sockets(t)); diff != "" {
		t.Errorf("the process has other sockets than before (-before +after):\n%s", diff)
	}
}

// sockets lists the sockets of this process.
func sockets(t *testing.T) []string {
	t.Helper()
	const folder = "/proc/self/fd"
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Skipf("this system does not list a process's open files: %v", err)
	}
	var out []string
	for _, file := range files {
		// The descriptor that listed the folder is closed by now.
		if target, err := os.Readlink(filepath.Join(folder, file.Name())); err == nil && strings.HasPrefix(target, "socket:") {
			out = append(out, target)
		}
	}
	return out
}

func TestAClosedServerRefuses(t *testing.T) {
	s := start(t, t.TempDir())
	s.Close()
	if _, err := s.Client().Put(t.Context(), "/a", "1"); err == nil {
		t.Error("a closed server took a value")
	}
	s.Close()
}

func TestStartSaysWhyItCannot(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	tests := map[string]struct {
		ctx  context.Context
		cfg  Config
		want string
	}{
		"no folder":             {t.Context(), Config{Log: log}, "Dir is empty"},
		"no logger":             {t.Context(), Config{Dir: t.TempDir()}, "Log is nil"},
		"the folder is a file":  {t.Context(), Config{Dir: file, Log: log}, "removing the files"},
		"nobody waits any more": {cancelled, Config{Dir: t.TempDir(), Log: log}, "context canceled"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Start(tt.ctx, tt.cfg)
			if err == nil {
				s.Close()
				t.Fatal("it started")
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %q, want it to say %q", err, tt.want)
			}
		})
	}
}

func TestWhatEtcdLogsGoesToTheLogger(t *testing.T) {
	var out bytes.Buffer
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	})
	level := zap.NewAtomicLevelAt(zap.WarnLevel)
	log := zap.New(newBridge(slog.New(handler), level)).With(zap.Int("member", 7))
	log.Info("not worth a word")
	log.Warn("disk is slow", zap.String("file", "db"), zap.Error(errors.New("late")))
	log.Error("no space")

	want := strings.Join([]string{
		`level=WARN msg="disk is slow" component=etcd member=7 file=db err=late`,
		`level=ERROR msg="no space" component=etcd member=7`,
		"",
	}, "\n")
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}

// BenchmarkStart starts a server, writes once, and closes it.
func BenchmarkStart(b *testing.B) {
	cfg := Config{Dir: b.TempDir(), Log: slog.New(slog.DiscardHandler)}
	for b.Loop() {
		s, err := Start(b.Context(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Client().Put(b.Context(), "/a", "1"); err != nil {
			b.Fatal(err)
		}
		s.Close()
	}
}
