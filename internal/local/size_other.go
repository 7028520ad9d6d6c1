//go:build !linux

package local

import "os"

// sizeOf returns the size of a file in bytes; 0 if there is none.
func sizeOf(path string) int64 {
	stat, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return stat.Size()
}
