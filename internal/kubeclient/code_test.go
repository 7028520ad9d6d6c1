package kubeclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// folder has files; names that end with a slash are folders.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func withCode(runtime v1alpha1.RuntimeName, handler, path string) *v1alpha1.Function {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name = "default", "f"
	fn.Spec = v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: runtime}, Handler: handler, Code: &v1alpha1.Code{Path: path}}}
	return fn
}

const manifest = "apiVersion: windlass.dev/v1alpha1\nkind: Function\n"

func TestCodeThatFits(t *testing.T) {
	big := strings.Repeat("#", v1alpha1.MaxInlineCode)
	for name, c := range map[string]struct {
		runtime v1alpha1.RuntimeName
		handler string
		files   map[string]string
		path    string
		inline  string
		names   []string
	}{
		"a file":                         {"python3.13", "main.handle", map[string]string{"main.py": "x", "other.py": "y"}, "main.py", "x", nil},
		"a folder with one file":         {"python3.13", "main.handle", map[string]string{"main.py": "x"}, ".", "x", nil},
		"what is no code beside it":      {"python3.13", "main.handle", map[string]string{"main.py": "x", "function.yaml": manifest, ".git/config": "", "__pycache__/main.pyc": "\x00", "main.pyc": "\x00", "main.py~": "y"}, ".", "x", nil},
		"Node.js":                        {"nodejs22.x", "app.exports.run", map[string]string{"app.js": "x"}, ".", "x", nil},
		"a kind of module of Node.js":    {"nodejs22.x", "app.run", map[string]string{"app.mjs": "x"}, ".", "", []string{"app.mjs"}},
		"several files":                  {"python3.13", "main.handle", map[string]string{"main.py": "x", "words.yaml": "a: 1"}, ".", "", []string{"main.py", "words.yaml"}},
		"a file that is not quite small": {"python3.13", "main.handle", map[string]string{"main.py": big + "#"}, ".", "", []string{"main.py"}},
		"the largest that is inline":     {"python3.13", "main.handle", map[string]string{"main.py": big}, ".", big, nil},
		"a runtime that is not known":    {"ruby", "main.handle", map[string]string{"main.rb": "x"}, ".", "", []string{"main.rb"}},
	} {
		t.Run(name, func(t *testing.T) {
			change, err := Prepare(withCode(c.runtime, c.handler, filepath.Join(folder(t, c.files), c.path)))
			if err != nil {
				t.Fatal(err)
			}
			code := change.function.Spec.Template.Code
			if code.Inline != c.inline || code.Path != "" || (code.ConfigMapRef.Name == "") != (c.names == nil) {
				t.Errorf("the code is %.200v", code)
			}
			var names []string
			for name := range change.files {
				names = append(names, name)
			}
			if diff := cmp.Diff(len(c.names), len(names)); diff != "" {
				t.Errorf("the files are %v, want %v", names, c.names)
			}
			for _, name := range c.names {
				if change.files[name] != c.files[name] {
					t.Errorf("%s is %.100q", name, change.files[name])
				}
			}
		})
	}
}

func TestCodeThatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		path  string
		want  []string
	}{
		"nothing there":          {nil, "nowhere", []string{"nowhere: there is no such file or folder"}},
		"an empty folder":        {nil, ".", []string{"is empty"}},
		"packages of npm":        {map[string]string{"main.py": "x", "node_modules/": ""}, ".", []string{"node_modules is a folder", "build an image"}},
		"a folder below":         {map[string]string{"main.py": "x", "lib/": ""}, ".", []string{"lib is a folder", "build an image", "--image"}},
		"bytes":                  {map[string]string{"main.py": "x", "logo.png": "\x89PNG\x00"}, ".", []string{"logo.png is not text", "build an image"}},
		"too much in a file":     {map[string]string{"main.py": strings.Repeat("x", maxFiles+1)}, ".", []string{"main.py is larger than 900000 bytes", "build an image"}},
		"too much in a folder":   {map[string]string{"main.py": strings.Repeat("x", maxFiles/2), "words.py": strings.Repeat("y", maxFiles/2)}, ".", []string{"is larger than 900000 bytes"}},
		"a name with a space":    {map[string]string{"main.py": "x", "my words.py": "y"}, ".", []string{"rename it"}},
		"no module":              {map[string]string{"app.py": "x"}, ".", []string{"spec.template.handler: main.handle needs the file main.py", "holds app.py"}},
		"a file that is another": {map[string]string{"main.py": "x", "app.py": "y"}, "app.py", []string{"needs the file main.py"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Prepare(withCode("python3.13", "main.handle", filepath.Join(folder(t, c.files), c.path)))
			wantError(t, err, ReasonInvalid, append(c.want, "function default/f: spec.")...)
		})
	}
}

func TestPrepareFindsWhatIsWrong(t *testing.T) {
	fn := withCode("", "", "/srv/code")
	fn.Spec.Template.Command = []string{"./server"}
	fn.Spec.Template.Concurrency = 5000
	_, err := Prepare(fn)
	wantError(t, err, ReasonInvalid, "function default/f: spec.template.command", "without an image", "spec.template.concurrency")
	if strings.Contains(err.Error(), "code.path") {
		t.Errorf("the folder of a command, which its author may not have written, is wrong too:\n%v", err)
	}
	if fn.Spec.Template.Code == nil || fn.Spec.Template.Timeout.Duration != 0 {
		t.Error("Prepare changes the function that it is given")
	}
}

func TestA1EditedCodeIsAnotherRevision(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"inline code": {"main.py": "one"},
		"a ConfigMap": {"main.py": "one", "words.py": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, files)
			revision := func() string {
				t.Helper()
				change, err := Prepare(withCode("python3.13", "main.handle", dir))
				if err != nil {
					t.Fatal(err)
				}
				return change.function.Revision()
			}
			first := revision()
			if again := revision(); again != first {
				t.Errorf("the same code is the revision %s and then %s", first, again)
			}
			if err := os.WriteFile(filepath.Join(dir, "main.py"), []byte("two"), 0o600); err != nil {
				t.Fatal(err)
			}
			if revision() == first {
				t.Error("edited code is the same revision, so instances with the old code stay")
			}
		})
	}
}

func TestTheNameOfCodeFollowsItsContent(t *testing.T) {
	names := map[string]bool{}
	for _, files := range []map[string]string{{"a": "x"}, {"a": "y"}, {"b": "x"}, {"a": "x", "b": ""}, {"a": "x1 b"}, {"a1": "x"}} {
		name := codeName("f", files)
		if names[name] || name != codeName("f", files) || !strings.HasPrefix(name, "f-code-") {
			t.Errorf("%v has the name %s", files, name)
		}
		names[name] = true
	}
}
