package runtimes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Sources of one handler, which tells that it was called.
const (
	pythonEcho = "def handler(event, context):\n    return 'called'\n"
	esmEcho    = "import os from 'node:os';\nexport const handler = () => os.EOL && 'called';\n"
	cjsEcho    = "const os = require('node:os');\nexports.handler = () => os.EOL && 'called';\n"
)

func TestTheEnvironmentSaysWhatToRun(t *testing.T) {
	for _, c := range []struct {
		name          string
		runtime       v1alpha1.RuntimeName
		file, handler string
		source        string
		env           []string
	}{
		{"python", v1alpha1.RuntimePython313, "app.py", "app.handler", pythonEcho, nil},
		{"python package", v1alpha1.RuntimePython313, "pkg/__init__.py", "pkg.handler", pythonEcho, nil},
		{"python in a folder", v1alpha1.RuntimePython313, "src/app.py", "src/app.handler", pythonEcho, nil},
		{"js that is CommonJS", v1alpha1.RuntimeNodeJS22, "app.js", "app.handler", cjsEcho, nil},
		{"js that is a module", v1alpha1.RuntimeNodeJS22, "app.js", "app.handler", esmEcho, nil},
		{"js that old Node.js cannot tell", v1alpha1.RuntimeNodeJS22, "app.js", "app.handler", esmEcho, withoutDetection},
		{"mjs", v1alpha1.RuntimeNodeJS22, "app.mjs", "app.handler", esmEcho, nil},
		{"cjs", v1alpha1.RuntimeNodeJS22, "app.cjs", "app.handler", cjsEcho, nil},
		{"js in a folder", v1alpha1.RuntimeNodeJS22, "src/app.js", "src/app.handler", cjsEcho, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if len(c.env) > 0 {
				needDetection(t)
			}
			api := newFakeAPI(t)
			s := startBare(t, c.runtime, append(api.env(), append(c.env, "LAMBDA_TASK_ROOT="+mounted(t, c.file, c.source), "_HANDLER="+c.handler)...)...)
			if got := api.call(t, event{id: "1"}); got.body != `"called"` {
				t.Errorf("got %+v", got)
			}
			s.terminate()
			s.expectExit(0)
			// Old Node.js says that it expected a package.json.
			if said := s.errors(); said != "" && len(c.env) == 0 {
				t.Errorf("standard error says %q, want nothing", said)
			}
		})
	}
}

// withoutDetection makes Node.js take .js files for what releases before 20.19
// take them.
var withoutDetection = []string{"NODE_OPTIONS=--no-experimental-detect-module --no-experimental-require-module"}

func needDetection(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(withPatience(t), need(t, v1alpha1.RuntimeNodeJS22), "-e", "")
	cmd.Env = append(os.Environ(), withoutDetection...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("this Node.js never looks at the syntax of a .js file: %s", out)
	}
}

// mounted is a folder with one file, as a volume of Kubernetes holds it: what
// it shows are links into a hidden folder, and nothing can be written.
func mounted(t *testing.T, file, source string) string {
	t.Helper()
	root := t.TempDir()
	first, _, _ := strings.Cut(file, "/")
	write(t, filepath.Join(root, "..2026", file), source, 0o444)
	for link, to := range map[string]string{"..data": "..2026", first: filepath.Join("..data", first)} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestAnEnvironmentThatSaysTooLittleIsAnInitError(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		root := t.TempDir()
		for _, c := range []struct{ name, root, handler, errorType, says string }{
			{"no folder", "", "app.handler", "Runtime.ImportModuleError", "LAMBDA_TASK_ROOT is not set"},
			{"no file", root, "app.handler", "Runtime.ImportModuleError", "app"},
			{"no handler", root, "", "Runtime.MalformedHandlerName", "_HANDLER is ''"},
			{"no function", root, "app.", "Runtime.MalformedHandlerName", "module.function"},
			{"no module", root, ".handler", "Runtime.MalformedHandlerName", "module.function"},
			{"outside of the code", root, "../app.handler", "Runtime.MalformedHandlerName", "module.function"},
			{"absolute", root, "/app.handler", "Runtime.MalformedHandlerName", "module.function"},
		} {
			t.Run(c.name, func(t *testing.T) {
				api := newFakeAPI(t)
				s := startBare(t, runtime, append(api.env(), "LAMBDA_TASK_ROOT="+c.root, "_HANDLER="+c.handler)...)
				got := receive(t, "the init error", api.results)
				if got.kind != "init/error" || got.errorType != c.errorType {
					t.Errorf("got %+v, want an init error of type %s", got, c.errorType)
				}
				checkReport(t, got, c.says)
				s.expectExit(1)
				s.expectError(c.says)
			})
		}
	})
}

func TestTheProtocolHTTPIsToldByTheEnvironmentToo(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		s := startBare(t, runtime, "WINDLASS_PROTOCOL=HTTP", "PORT=1", "_HANDLER=app.handler")
		s.expectExit(1)
		s.expectError("LAMBDA_TASK_ROOT is not set")
	})
}

func TestAnUnknownProtocolIsNamed(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		s := startBare(t, runtime, "WINDLASS_PROTOCOL=SMTP")
		s.expectExit(1)
		s.expectError("WINDLASS_PROTOCOL is 'SMTP'; it must be LambdaRuntime or HTTP")
	})
}

func TestInlineCodeIsNotGovernedByAPackageAbove(t *testing.T) {
	need(t, v1alpha1.RuntimeNodeJS22)
	for kind, source := range map[string]string{"module": cjsEcho, "commonjs": esmEcho} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "package.json"), `{"type":"`+kind+`"}`, 0o644)
			l, err := Launch(Request{Runtime: v1alpha1.RuntimeNodeJS22, Handler: "app.handler", Code: &v1alpha1.Code{Inline: source},
				WorkDir: filepath.Join(dir, "work")})
			if err != nil {
				t.Fatal(err)
			}
			api := newFakeAPI(t)
			start(t, l.Argv, l.Dir, append(l.Env, api.env()...)...)
			if got := api.call(t, event{id: "1"}); got.body != `"called"` {
				t.Errorf("got %+v", got)
			}
		})
	}
}
