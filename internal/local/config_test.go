package local

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestA15ADataFolderThatCannotBeUsedIsExplained(t *testing.T) {
	for cause, want := range map[syscall.Errno]string{
		syscall.EACCES:  "you have no permission to write there; choose a folder",
		syscall.EROFS:   "its file system is read-only; choose",
		syscall.ENOTDIR: "there is a file where a folder should be; choose",
		syscall.ENOENT:  "no folder can be made there; choose",
		syscall.ENOSPC:  "no space is left there; choose",
		syscall.EIO:     "input/output error; choose",
	} {
		err := unusable("/data", &fs.PathError{Op: "mkdir", Path: "/data/instances", Err: cause})
		if got := err.Error(); !strings.HasPrefix(got, "--data-dir /data: Windlass cannot make /data/instances: "+want) {
			t.Errorf("%s", got)
		}
	}
}

func TestAddressesThatOthersReachAreRefusedInOneOrder(t *testing.T) {
	config := DefaultConfig()
	config.DataDir, config.Listen, config.OpsListen = t.TempDir(), "0.0.0.0:1", "8081"
	want := `--listen "0.0.0.0:1" is not a loopback address: local mode encrypts nothing, so it listens on this machine only; write for example 127.0.0.1:8080` +
		"\n" + `--ops-listen "8081" is no address: write host:port, for example 127.0.0.1:8080`
	for range 20 {
		if err := config.Validate(); err == nil || err.Error() != want {
			t.Fatalf("%v", err)
		}
	}
}

func TestA15AFileIsNoDataFolder(t *testing.T) {
	config := DefaultConfig()
	config.AgentPath = os.Args[0]
	config.DataDir = filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(config.DataDir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(config, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "--data-dir "+config.DataDir) || !strings.Contains(err.Error(), "a file where a folder should be") ||
		strings.Contains(err.Error(), "process:") || strings.Contains(err.Error(), "mkdir") {
		t.Errorf("%v", err)
	}
}
