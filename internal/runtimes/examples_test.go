package runtimes

import (
	"bytes"
	"image"
	_ "image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

const examples = "../../examples"

// example is the function of a folder in examples.
func example(t *testing.T, name string) *v1alpha1.Function {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(dir, "function.yaml")
	functions, err := v1alpha1.Decode(input(t, filepath.Join(name, "function.yaml")), manifest)
	if err != nil || len(functions) != 1 {
		t.Fatalf("%s holds %d functions: %v", manifest, len(functions), err)
	}
	f := functions[0]
	v1alpha1.Default(f)
	v1alpha1.ResolvePaths(f, dir)
	return f
}

func requestOf(f *v1alpha1.Function) Request {
	return Request{Runtime: f.Spec.Template.RuntimeRef.Name, Protocol: f.Spec.Template.Protocol, Handler: f.Spec.Template.Handler, Code: f.Spec.Template.Code}
}

// input is a file in examples.
func input(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// prepared skips the test if a folder that `make examples` fills is not there.
func prepared(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(examples, dir)); err != nil {
		t.Skipf("examples/%s is not there: run make examples", dir)
	}
}

func TestTheManifestsOfTheExamplesAreValid(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join(examples, "*", "function.yaml"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("manifests: %v, %v", manifests, err)
	}
	for _, manifest := range manifests {
		name := filepath.Base(filepath.Dir(manifest))
		f := example(t, name)
		for _, err := range append(v1alpha1.Validate(f), v1alpha1.ValidateLocal(f)...) {
			t.Errorf("%s: %v", name, err)
		}
		if f.Name != name {
			t.Errorf("the function in %s is named %s", name, f.Name)
		}
	}
}

func TestExampleHello(t *testing.T) {
	api := newFakeAPI(t)
	startCode(t, requestOf(example(t, "hello")), api.env()...)
	for body, want := range map[string]string{`{"name":"Ada"}`: "Hello, Ada!", "": "Hello, world!"} {
		if got := api.call(t, event{id: "1", body: body}); !strings.Contains(got.body, want) {
			t.Errorf("%s: got %+v, want %s", body, got, want)
		}
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
	got := s.ask("POST", "/?width=90", bytes.NewReader(picture))
	small, format, err := image.DecodeConfig(strings.NewReader(got.body))
	if err != nil || format != "jpeg" || small.Width != 90 || small.Height != 60 || got.header.Get("Content-Type") != "image/jpeg" {
		t.Errorf("got %d, %s of %d x %d (%v), want a jpeg of 90 x 60", got.status, format, small.Width, small.Height, err)
	}
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
