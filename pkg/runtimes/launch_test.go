package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// onPath puts empty programs of these names on an otherwise empty PATH.
func onPath(t *testing.T, programs ...string) string {
	t.Helper()
	bin := t.TempDir()
	for _, p := range programs {
		write(t, filepath.Join(bin, p), "", 0o755)
	}
	t.Setenv("PATH", bin)
	return bin
}

func write(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

func TestInlineCodeBecomesTheModuleThatTheHandlerNames(t *testing.T) {
	bin := onPath(t, "python3", "node")
	for _, c := range []struct {
		name, handler, source string
		runtime               v1alpha1.RuntimeName
		program               string
		argv                  []string // below WorkDir where it begins with ./
		file                  string
	}{
		{"python", "app.handler", "x = 1\n", v1alpha1.RuntimePython3, "python3",
			[]string{"./runtime/bootstrap.py", "LambdaRuntime", "./code", "app", "handler"}, "code/app.py"},
		{"python in a package", "pkg.app.handler", "x = 1\n", v1alpha1.RuntimePython3, "python3",
			[]string{"./runtime/bootstrap.py", "LambdaRuntime", "./code", "pkg.app", "handler"}, "code/pkg/app.py"},
		{"CommonJS", "app.handler", "exports.handler = 1\n", v1alpha1.RuntimeNodeJS, "node",
			[]string{"./runtime/bootstrap.mjs", "LambdaRuntime", "./code", "./code/app.cjs", "handler"}, "code/app.cjs"},
		{"ES module", "src/app.api.get", "export const api = {}\n", v1alpha1.RuntimeNodeJS, "node",
			[]string{"./runtime/bootstrap.mjs", "LambdaRuntime", "./code", "./code/src/app.mjs", "api.get"}, "code/src/app.mjs"},
	} {
		t.Run(c.name, func(t *testing.T) {
			work := t.TempDir()
			got, err := Launch(Request{Runtime: c.runtime, Handler: c.handler, Code: &v1alpha1.Code{Inline: c.source}, WorkDir: work})
			if err != nil {
				t.Fatal(err)
			}
			want := []string{filepath.Join(bin, c.program)}
			for _, arg := range c.argv {
				if strings.HasPrefix(arg, "./") {
					arg = filepath.Join(work, arg)
				}
				want = append(want, arg)
			}
			if diff := cmp.Diff(want, got.Argv); diff != "" {
				t.Errorf("Argv (-want +got):\n%s", diff)
			}
			if code := filepath.Join(work, "code"); got.Dir != code || got.TaskRoot != code {
				t.Errorf("Dir %s and TaskRoot %s, want %s", got.Dir, got.TaskRoot, code)
			}
			for file, content := range map[string]string{c.file: c.source, "runtime/" + filepath.Base(got.Argv[1]): ""} {
				on, err := os.ReadFile(filepath.Join(work, file))
				if err != nil || !strings.Contains(string(on), content) {
					t.Errorf("%s holds %q (%v), want %q", file, on, err, content)
				}
			}
		})
	}
}

func TestCodeIsLookedForInItsFolder(t *testing.T) {
	onPath(t, "python3", "node")
	dir := t.TempDir()
	for _, file := range []string{"app.py", "pkg/__init__.py", "sub/mod.py", "web.mjs", "lib/old.cjs", "both.js", "both.mjs"} {
		write(t, filepath.Join(dir, file), "", 0o644)
	}
	for _, c := range []struct {
		runtime       v1alpha1.RuntimeName
		path, handler string
		dir, target   string
	}{
		{v1alpha1.RuntimePython3, ".", "app.handler", ".", "app"},
		{v1alpha1.RuntimePython3, "app.py", "app.handler", ".", "app"},
		{v1alpha1.RuntimePython3, ".", "pkg.handler", ".", "pkg"},
		{v1alpha1.RuntimePython3, ".", "sub/mod.handler", ".", "sub.mod"},
		{v1alpha1.RuntimePython3, "sub", "mod.handler", "sub", "mod"},
		{v1alpha1.RuntimeNodeJS, ".", "web.handler", ".", "web.mjs"},
		{v1alpha1.RuntimeNodeJS, ".", "lib/old.a.b", ".", "lib/old.cjs"},
		{v1alpha1.RuntimeNodeJS, ".", "both.handler", ".", "both.js"},
	} {
		t.Run(c.path+" "+c.handler, func(t *testing.T) {
			got, err := Launch(Request{Runtime: c.runtime, Handler: c.handler, WorkDir: t.TempDir(),
				Code: &v1alpha1.Code{Path: filepath.Join(dir, c.path)}})
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, c.dir); got.Dir != want {
				t.Errorf("Dir is %s, want %s", got.Dir, want)
			}
			target := c.target
			if c.runtime == v1alpha1.RuntimeNodeJS {
				target = filepath.Join(dir, target)
			}
			if got.Argv[4] != target {
				t.Errorf("the shim is told to load %s, want %s", got.Argv[4], target)
			}
		})
	}
}

func TestAVirtualEnvironmentBesideTheCodeIsPreferred(t *testing.T) {
	onPath(t, "python3")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.py"), "", 0o644)
	venv := filepath.Join(dir, ".venv", "bin", "python3")
	write(t, venv, "", 0o755)
	got, err := Launch(Request{Runtime: v1alpha1.RuntimePython3, Handler: "app.handler", Code: &v1alpha1.Code{Path: dir}, WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if got.Argv[0] != venv {
		t.Errorf("runs %s, want %s", got.Argv[0], venv)
	}
}

func TestLaunchAgainReplacesWhatChanged(t *testing.T) {
	onPath(t, "python3")
	work := t.TempDir()
	for _, source := range []string{"x = 1\n", "x = 2\n"} {
		r := Request{Runtime: v1alpha1.RuntimePython3, Handler: "app.handler", Code: &v1alpha1.Code{Inline: source}, WorkDir: work}
		if _, err := Launch(r); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(work, "code", "app.py"))
		if err != nil || string(got) != source {
			t.Errorf("the module holds %q (%v), want %q", got, err, source)
		}
	}
	left, err := filepath.Glob(filepath.Join(work, "*", ".write-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestErrorsNameWhatIsMissingAndTheRemedy(t *testing.T) {
	onPath(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "app.py"), "", 0o644)
	write(t, filepath.Join(dir, "file"), "", 0o644)
	good := Request{Runtime: v1alpha1.RuntimePython3, Handler: "app.handler", Code: &v1alpha1.Code{Path: dir}, WorkDir: t.TempDir()}
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   []string
	}{
		{"no python", func(*Request) {}, []string{"python3 is not on PATH", "install Python", ".venv"}},
		{"no node", func(r *Request) { r.Runtime, r.Code = v1alpha1.RuntimeNodeJS, &v1alpha1.Code{Inline: "x"} },
			[]string{"node is not on PATH", "install Node.js"}},
		{"unknown runtime", func(r *Request) { r.Runtime = "cobol" }, []string{`"cobol"`, "python3", "nodejs"}},
		{"unknown protocol", func(r *Request) { r.Protocol = "SMTP" }, []string{`"SMTP"`, "LambdaRuntime", "HTTP"}},
		{"no code", func(r *Request) { r.Code = nil }, []string{"code.inline", "code.path"}},
		{"both codes", func(r *Request) { r.Code = &v1alpha1.Code{Inline: "x", Path: "y"} }, []string{"either code.inline or code.path"}},
		{"no such path", func(r *Request) { r.Code = &v1alpha1.Code{Path: filepath.Join(dir, "gone")} },
			[]string{filepath.Join(dir, "gone"), "no such file", "give the path"}},
		{"no such module", func(r *Request) { r.Handler = "other.handler" }, []string{`"other.handler"`, dir, "other.py", "correct the handler"}},
		{"no module", func(r *Request) { r.Handler = "handler" }, []string{`"handler"`, "module.function"}},
		{"no name", func(r *Request) { r.Handler = "app." }, []string{`"app."`, "module.function"}},
		{"outside of the code", func(r *Request) { r.Runtime, r.Handler = v1alpha1.RuntimeNodeJS, "../app.handler" },
			[]string{`"../app.handler"`, "module.function"}},
		{"no work directory", func(r *Request) { r.WorkDir = "" }, []string{"work directory"}},
		{"a work directory that is a file", func(r *Request) {
			r.WorkDir, r.Code = filepath.Join(dir, "file"), &v1alpha1.Code{Inline: "x"}
		}, []string{"work directory cannot be written"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := good
			c.change(&r)
			_, err := Launch(r)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q: %v", want, err)
				}
			}
		})
	}
}

func TestTheKindOfAnInlineNodeModuleIsSeenFromItsSource(t *testing.T) {
	for source, want := range map[string]string{
		"exports.handler = () => 1":                             ".cjs",
		"const x = await import('x')":                           ".cjs",
		"import('x').then(y)":                                   ".cjs",
		"exported = 1; importing = 2":                           ".cjs",
		"export const handler = 1":                              ".mjs",
		"  export{handler}":                                     ".mjs",
		"import fs from 'fs'":                                   ".mjs",
		"const a = 1\nimport * as b from 'b'\nexport default a": ".mjs",
		"import 'x'":                                            ".mjs",
	} {
		if got := inlineExtension(source); got != want {
			t.Errorf("%q: %s, want %s", source, got, want)
		}
	}
}
