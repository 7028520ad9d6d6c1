package file

import (
	"os"
	"path/filepath"
)

// IsDataFolder reports whether a folder is the data folder of a Windlass. It may be below a
// function's code or manifests, and what Windlass writes there is neither.
func IsDataFolder(dir string) bool {
	for _, name := range []string{"functions", "instances", "instances.lock"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}
