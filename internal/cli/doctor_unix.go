//go:build unix

package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// enoughFiles are what a few hundred instances need.
const enoughFiles = 4096

func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// examineLimits looks at the limits of the user's processes.
func examineLimits() []finding {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return nil
	}
	// Go raises the soft limit to the hard one.
	if files.Max < enoughFiles {
		return []finding{{healthWarn, "open files", fmt.Sprintf("a process may have %d, which is little for many instances; raise it with ulimit -Hn %d", files.Max, enoughFiles)}}
	}
	return []finding{{healthOK, "open files", fmt.Sprintf("a process may have %d", files.Max)}}
}
