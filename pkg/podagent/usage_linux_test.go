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

func TestAnAgentKnowsWhatItUses(t *testing.T) {
	var held []byte
	cpu, resident := usage()
	for range 64 {
		held = append(held, make([]byte, 1<<20)...)
	}
	for i := range held {
		held[i] = byte(i)
	}
	moreCPU, moreResident := usage()
	if cpu <= 0 || moreCPU <= cpu || resident < 1<<20 || moreResident < resident+32<<20 {
		t.Errorf("%v and %d bytes, then %v and %d bytes, with %d more, the last %d", cpu, resident, moreCPU, moreResident, len(held), held[len(held)-1])
	}
}
