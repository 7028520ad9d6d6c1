package cgroups

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestAReadableReadsAFileAnew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "cpuacct.usage")
	writeText := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenReadable(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	writeText("123456\n")
	r, err := OpenReadable(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"123456\n", "99\n", ""} {
		writeText(text)
		var buffer [32]byte
		if n, err := r.ReadAt(buffer[:], 0); string(buffer[:n]) != text || !errors.Is(err, io.EOF) {
			t.Errorf("read %q, %v, want %q and its end", buffer[:n], err, text)
		}
	}
	writeText("123456\n")
	part := make([]byte, 3)
	if n, err := r.ReadAt(part, 2); n != 3 || err != nil || string(part) != "345" {
		t.Errorf("a part is %q, %v", part[:n], err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	var of *fs.PathError
	if _, err := r.ReadAt(part, 0); !errors.As(err, &of) || of.Path != name {
		t.Errorf("reading a closed file: %v, which must name it", err)
	}
}
