package instancelog

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// FuzzFollow prints logs of anything, which grow while they are read.
func FuzzFollow(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree"), []byte("more\n"), -1)
	f.Add([]byte("\n\n\n"), []byte(nil), 2)
	f.Add([]byte("a\x00\xff\r\n"), []byte("\n"), 0)
	f.Fuzz(func(t *testing.T, first, more []byte, tail int) {
		dir := t.TempDir()
		name := filepath.Join(dir, FunctionFile("c"))
		write := func(text []byte) {
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var out bytes.Buffer
		follower := newFollower(&out, dir, Options{Tail: tail})
		write(first)
		if err := follower.step(); err != nil {
			t.Fatal(err)
		}
		write(append(first[:len(first):len(first)], more...))
		if err := follower.step(); err != nil {
			t.Fatal(err)
		}
		if err := follower.flush(); err != nil {
			t.Fatal(err)
		}
		if cid, ok := FileCID(FunctionFile("c")); !ok || cid != invocation.CID("c") {
			t.Errorf("the file is of %q", cid)
		}
		if whole := string(first) + string(more); tail < 0 && len(whole) < chunkBytes {
			want := ""
			if whole != "" {
				want = "c | " + strings.ReplaceAll(strings.TrimSuffix(whole, "\n"), "\n", "\nc | ") + "\n"
			}
			if out.String() != want {
				t.Errorf("printed %q, want %q", out.String(), want)
			}
		}
	})
}
