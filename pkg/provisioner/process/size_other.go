//go:build !linux || !(amd64 || arm64)

package process

import "os"

// sizeOf returns the size of a file; false if the system does not say.
func sizeOf(file *os.File) (int64, bool) {
	info, err := file.Stat()
	if err != nil {
		return 0, false
	}
	return info.Size(), true
}
