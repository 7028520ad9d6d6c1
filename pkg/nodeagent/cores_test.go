package nodeagent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestANodeAgentThatMayNotUseAllCoresSaysSo(t *testing.T) {
	for name, tc := range map[string]struct {
		list   string
		mayUse int
		want   string
	}{
		"all":            {"0-3\n", 4, ""},
		"some":           {"0-3,8\n", 2, "cores=2 online=5"},
		"none is listed": {"", 4, ""},
		"nonsense":       {"a few\n", 4, ""},
	} {
		var log bytes.Buffer
		file := filepath.Join(t.TempDir(), "online")
		if err := os.WriteFile(file, []byte(tc.list), 0o600); err != nil {
			t.Fatal(err)
		}
		CheckCores(tc.mayUse, file, slog.New(slog.NewTextHandler(&log, nil)))
		if got := log.String(); (got != "") != (tc.want != "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: it says %q, want %q", name, got, tc.want)
		}
	}
	CheckCores(4, "/no/such/file", slog.New(slog.NewTextHandler(os.Stderr, nil)))
}
