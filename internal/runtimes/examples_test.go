package runtimes

import (
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
