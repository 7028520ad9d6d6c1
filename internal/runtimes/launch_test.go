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
		name, handler string
		runtime       v1alpha1.RuntimeName
		program, shim string
		file          string
		env           []string
	}{
		{"python", "app.handler", v1alpha1.RuntimePython313, "python3", "bootstrap.py", "app.py", []string{"PYTHONDONTWRITEBYTECODE=1"}},
		{"python in a package", "pkg.app.handler", v1alpha1.RuntimePython313, "python3", "bootstrap.py", "pkg/app.py", []string{"PYTHONDONTWRITEBYTECODE=1"}},
		{"nodejs", "app.handler", v1alpha1.RuntimeNodeJS22, "node", "bootstrap.mjs", "app.js", nil},
		{"nodejs in a folder", "src/app.api.get", v1alpha1.RuntimeNodeJS22, "node", "bootstrap.mjs", "src/app.js", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			const source = "the source"
			work := t.TempDir()
			got, err := Launch(Request{Runtime: c.runtime, Handler: c.handler, Code: &v1alpha1.Code{Inline: source}, WorkDir: work})
			if err != nil {
				t.Fatal(err)
			}
			code, shims := filepath.Join(work, "code"), filepath.Join(work, "runtime")
			want := Launched{
				Argv: []string{filepath.Join(bin, c.program), filepath.Join(shims, c.shim)},
				Env: append([]string{"WINDLASS_PROTOCOL=LambdaRuntime", "_HANDLER=" + c.handler, "LAMBDA_TASK_ROOT=" + code,
					"LAMBDA_RUNTIME_DIR=" + shims}, c.env...),
				Dir:      code,
				TaskRoot: code,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Launched (-want +got):\n%s", diff)
			}
			if on, err := os.ReadFile(filepath.Join(code, c.file)); err != nil || string(on) != source {
				t.Errorf("%s holds %q (%v), want %q", c.file, on, err, source)
			}
			if _, err := os.Stat(got.Argv[1]); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCodeIsLookedForInItsFolder(t *testing.T) {
	onPath(t, "python3", "node")
	dir := t.TempDir()
	for _, file := range []string{"app.py", "pkg/__init__.py", "sub/mod.py", "web.mjs", "lib/old.cjs"} {
		write(t, filepath.Join(dir, file), "", 0o644)
	}
	for _, c := range []struct {
		runtime            v1alpha1.RuntimeName
		path, handler, dir string
	}{
		{v1alpha1.RuntimePython313, ".", "app.handler", "."},
		{v1alpha1.RuntimePython313, "app.py", "app.handler", "."},
		{v1alpha1.RuntimePython313, ".", "pkg.handler", "."},
		{v1alpha1.RuntimePython313, ".", "sub/mod.handler", "."},
		{v1alpha1.RuntimePython313, "sub", "mod.handler", "sub"},
		{v1alpha1.RuntimeNodeJS22, ".", "web.handler", "."},
		{v1alpha1.RuntimeNodeJS22, ".", "lib/old.a.b", "."},
	} {
		t.Run(c.path+" "+c.handler, func(t *testing.T) {
			got, err := Launch(Request{Runtime: c.runtime, Handler: c.handler, WorkDir: t.TempDir(),
				Code: &v1alpha1.Code{Path: filepath.Join(dir, c.path)}})
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(dir, c.dir); got.Dir != want || got.TaskRoot != want {
				t.Errorf("Dir is %s and TaskRoot %s, want %s", got.Dir, got.TaskRoot, want)
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
	got, err := Launch(Request{Runtime: v1alpha1.RuntimePython313, Handler: "app.handler", Code: &v1alpha1.Code{Path: dir}, WorkDir: t.TempDir()})
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
		r := Request{Runtime: v1alpha1.RuntimePython313, Handler: "app.handler", Code: &v1alpha1.Code{Inline: source}, WorkDir: work}
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
	good := Request{Runtime: v1alpha1.RuntimePython313, Handler: "app.handler", Code: &v1alpha1.Code{Path: dir}, WorkDir: t.TempDir()}
	for _, c := range []struct {
		name   string
		change func(*Request)
		want   []string
	}{
		{"no python", func(*Request) {}, []string{"python3 is not on PATH", "install Python", ".venv"}},
		{"no node", func(r *Request) { r.Runtime, r.Code = v1alpha1.RuntimeNodeJS22, &v1alpha1.Code{Inline: "x"} },
			[]string{"node is not on PATH", "install Node.js"}},
		{"unknown runtime", func(r *Request) { r.Runtime = "cobol" }, []string{`"cobol"`, "python3.13", "nodejs22.x"}},
		{"unknown protocol", func(r *Request) { r.Protocol = "SMTP" }, []string{`"SMTP"`, "LambdaRuntime", "HTTP"}},
		{"no code", func(r *Request) { r.Code = nil }, []string{"code.inline", "code.path"}},
		{"both codes", func(r *Request) { r.Code = &v1alpha1.Code{Inline: "x", Path: "y"} }, []string{"either code.inline or code.path"}},
		{"no such path", func(r *Request) { r.Code = &v1alpha1.Code{Path: filepath.Join(dir, "gone")} },
			[]string{filepath.Join(dir, "gone"), "no such file", "give the path"}},
		{"no such module", func(r *Request) { r.Handler = "other.handler" }, []string{`"other.handler"`, dir, "other.py", "correct the handler"}},
		{"no module", func(r *Request) { r.Handler = "handler" }, []string{`"handler"`, "module.function"}},
		{"no name", func(r *Request) { r.Handler = "app." }, []string{`"app."`, "module.function"}},
		{"outside of the code", func(r *Request) { r.Runtime, r.Handler = v1alpha1.RuntimeNodeJS22, "../app.handler" },
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
