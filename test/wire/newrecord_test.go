//go:build record

package wire

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var recordAs = flag.String("record", "", "record the stories into this folder of testdata, which must not exist")

// TestRecord records what all programs of this tree say in every story. What was recorded
// before is never changed.
func TestRecord(t *testing.T) {
	folder := filepath.Join("testdata", *recordAs)
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatalf("%v: what was recorded of a release is not changed; choose another name with RELEASE=", err)
	}
	if err := writeDescriptors(folder); err != nil {
		t.Fatal(err)
	}
	for _, s := range stories {
		if err := (recording{s.name, play(t, s)}).write(folder); err != nil {
			t.Fatal(err)
		}
	}
}
