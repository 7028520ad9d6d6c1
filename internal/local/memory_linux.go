package local

import "golang.org/x/sys/unix"

// totalMemory is the machine's memory in bytes.
func totalMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 8 << 30
	}
	return int64(info.Totalram) * int64(info.Unit)
}
