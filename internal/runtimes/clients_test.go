//go:build clients

package runtimes

import (
	"bytes"
	"image"
	_ "image/jpeg"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prepared fails the test if a folder that `make examples` fills is not there.
func prepared(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(examples, dir)); err != nil {
		t.Fatalf("examples/%s is not there: run make examples", dir)
	}
}

func TestExampleThumbnail(t *testing.T) {
	prepared(t, "thumbnail/.venv")
	s := startSiteOf(t, requestOf(example(t, "thumbnail")))
	picture := input(t, "inputs/harbour.jpg")
	for _, c := range []struct {
		name, method, path string
		body               []byte
		status             int
		says               string
	}{
		{"no picture", "POST", "/", nil, 400, "the body is empty"},
		{"not a picture", "POST", "/", []byte("GIF89a"), 400, "not a JPEG or PNG"},
		{"half a picture", "POST", "/", picture[:len(picture)/2], 400, "not a JPEG or PNG"},
		{"no number", "POST", "/?width=wide", picture, 400, "width is 'wide'"},
		{"too wide", "POST", "/?width=2001", picture, 400, "from 1 to 2000"},
		{"no body wanted", "GET", "/", nil, 405, "POST a picture"},
	} {
		if got := s.ask(c.method, c.path, bytes.NewReader(c.body)); got.status != c.status || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: got %d %.100q, want %d %q", c.name, got.status, got.body, c.status, c.says)
		}
	}
	for name, photo := range map[string][]byte{"JPEG": picture, "MPO": phonePhoto(t)} {
		got := s.ask("POST", "/?width=90", bytes.NewReader(photo))
		small, format, err := image.DecodeConfig(strings.NewReader(got.body))
		if err != nil || format != "jpeg" || small.Width != 90 || small.Height != 60 || got.header.Get("Content-Type") != "image/jpeg" {
			t.Errorf("%s: got %d, %s of %d x %d (%v) as %s, want a jpeg of 90 x 60", name, got.status, format, small.Width, small.Height, err, got.header.Get("Content-Type"))
		}
	}
}

// phonePhoto is a picture as many phones make it: a JPEG with a second one behind it (MPO).
func phonePhoto(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "photo.jpg")
	const program = `import sys; from PIL import Image; p = Image.open(sys.argv[1]); p.save(sys.argv[2], "MPO", save_all=True, append_images=[p.copy()])`
	python := filepath.Join(examples, "thumbnail/.venv/bin/python3")
	said, err := exec.CommandContext(t.Context(), python, "-c", program, filepath.Join(examples, "inputs/harbour.jpg"), out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	photo, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return photo
}

func TestExampleMarkdown(t *testing.T) {
	prepared(t, "markdown/node_modules")
	s := startSiteOf(t, requestOf(example(t, "markdown")))
	got := s.ask("POST", "/", bytes.NewReader(input(t, "inputs/notes.md")))
	for _, want := range []string{"<title>Notes from the quay</title>", "<strong>windlass</strong>", "<table>", `class="language-python"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("%d %q does not hold %s", got.status, got.body, want)
		}
	}
	if got := s.ask("GET", "/", nil); got.status != 405 {
		t.Errorf("GET got %d, want 405", got.status)
	}
	if got := s.ask("POST", "/", bytes.NewReader(make([]byte, 1<<20+1))); got.status != 413 {
		t.Errorf("a long text got %d, want 413", got.status)
	}
	if got := s.ask("POST", "/", strings.NewReader("plain & simple")); !strings.Contains(got.body, "<p>plain &amp; simple</p>") {
		t.Errorf("got %q", got.body)
	}
}
