//go:build !linux || !(amd64 || arm64)

package cgroups

import "os"

// Readable is a file of the kernel that is read again and again, by one goroutine at a time.
type Readable struct{ *os.File }

// OpenReadable opens such a file.
func OpenReadable(name string) (*Readable, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return &Readable{file}, nil
}
