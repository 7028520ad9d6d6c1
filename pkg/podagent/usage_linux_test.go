package podagent

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAnAgentKnowsItsControlGroup(t *testing.T) {
	root := t.TempDir()
	if got := ownGroup(root); got != 0 {
		t.Errorf("without control groups it is %d", got)
	}
	for _, dir := range []string{"sys/fs/cgroup", "sys/fs/cgroup/freezer"} { // version 2, and 1 in it
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		var is syscall.Stat_t
		if err := syscall.Stat(filepath.Join(root, dir), &is); err != nil {
			t.Fatal(err)
		}
		if got := ownGroup(root); got != is.Ino {
			t.Errorf("with %s it is %d, want %d", dir, got, is.Ino)
		}
	}
}
