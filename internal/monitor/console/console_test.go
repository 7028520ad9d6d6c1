package console

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// consoleText is what is logged in a minute of a small Windlass.
func consoleText(ctx context.Context, c *Console) {
	at := noon
	log := func(level slog.Level, text string, args ...any) {
		at = at.Add(1234 * time.Millisecond)
		record := slog.NewRecord(at, level, text, 0)
		record.Add(args...)
		if c.Enabled(ctx, level) {
			_ = c.Handle(ctx, record)
		}
	}
	const hello, first = "default/hello", "0000002a-000007"
	log(slog.LevelInfo, "slots changed hands", "gained", 1024, "lost", 0, "held", 1024)
	log(slog.LevelInfo, "launched instances", "function", hello, "wanted", 1, "waiting", 1, "reason", "FirstInstance", "launched", 1)
	log(slog.LevelInfo, "instance started", "function", hello, "cid", first, "addr", "127.0.0.1:1")
	log(slog.LevelInfo, "an instance joined", "function", hello, "cid", first)
	log(slog.LevelInfo, "an instance is ready", "function", hello, "cid", first, "took", 173*time.Millisecond)
	c.Printed(hello, first, at, "GET /\x1b[31m evil\ttab")
	c.Printed("team/thumbnail", "00000001-000001", at.Add(time.Millisecond), "")
	log(slog.LevelInfo, "call ended", "function", hello, "invocation", "0f", "cid", first, "code", 200, "executed", "yes", "cold", true, "received", noon, "ended", noon.Add(190*time.Millisecond))
	log(slog.LevelWarn, "call ended", "function", hello, "invocation", "10", "code", 502, "reason", "FunctionLost", "received", noon, "ended", noon.Add(time.Second))
	log(slog.LevelInfo, "launched instances", "function", "team/thumbnail", "reason", "Rate", "launched", 3)
	log(slog.LevelWarn, "an instance did not start", "function", "team/thumbnail", "cid", "00000001-00000c", "reason", "the function exited with status 3")
	log(slog.LevelWarn, "memory limits are not enforced", "err", errors.New("no cgroup"))
	log(slog.LevelInfo, "instance ended", "function", hello, "cid", first, "reason", "it was idle")
	log(slog.LevelError, "the disk is full")
	log(slog.LevelDebug, "a detail", "addr", "x")
}

func TestA11TheConsoleIsForPeople(t *testing.T) {
	for name, config := range map[string]Config{
		"plain":    {Level: slog.LevelInfo, Home: "default"},
		"colours":  {Level: slog.LevelInfo, Home: "default", Colours: true},
		"debug":    {Level: slog.LevelDebug, Home: "default"},
		"warnings": {Level: slog.LevelWarn, Home: "default"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			consoleText(t.Context(), New(&out, config))
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("-want +got, and -update rewrites it:\n%s", diff)
			}
			if !config.Colours && strings.Contains(out.String(), "\x1b") {
				t.Error("what a function prints reaches the terminal as it is")
			}
		})
	}
}

func TestAttributesOfALoggerAreKept(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(New(&out, Config{Home: "default"})).With("function", "default/hello", "cid", "00000001-000002")
	log.Info("instance ended", "reason", "stopped")
	log.Info("something else")
	if got := out.String(); !strings.HasSuffix(got, " hello        1-2   · ended: stopped\n") {
		t.Errorf("shown: %q", got)
	}
}

func TestShortIDs(t *testing.T) {
	for id, want := range map[string]string{"0000002a-000007": "2a-7", "00000000-000001": "0-1", "": "", "c": "c", "x\x1b": "x?"} {
		if got := Short(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}
