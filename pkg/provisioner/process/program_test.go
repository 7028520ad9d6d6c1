package process

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
)

func TestTheProgramOfACommand(t *testing.T) {
	code := t.TempDir()
	file := filepath.Join(code, "app.py")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		program, code string
		path, dir     string
	}{
		"without code it runs in the instance's folder": {"./app", "", "/instance/app", "/instance"},
		"it runs in the folder of the code":             {"./app", code, filepath.Join(code, "app"), code},
		"it runs in the folder of the code's file":      {"bin/app", file, filepath.Join(code, "bin/app"), code},
		"a bare name is left for PATH":                  {"app", code, "app", code},
		"an absolute path stays":                        {"/bin/app", code, "/bin/app", code},
	} {
		t.Run(name, func(t *testing.T) {
			f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{Template: v1alpha1.FunctionTemplate{Command: []string{c.program, "-v"}}}}
			if c.code != "" {
				f.Spec.Template.Code = &v1alpha1.Code{Path: c.code}
			}
			got, err := programOf(f, "/instance", noLauncher)
			if err != nil {
				t.Fatal(err)
			}
			want := program{path: c.path, argv: []string{c.program, "-v"}, dir: c.dir, taskRoot: c.dir}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(program{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheProgramOfARuntime(t *testing.T) {
	f := &v1alpha1.Function{Spec: v1alpha1.FunctionSpec{
		Template: v1alpha1.FunctionTemplate{RuntimeRef: v1alpha1.RuntimeReference{Name: v1alpha1.RuntimePython313}, Handler: "app.handler", Protocol: v1alpha1.ProtocolLambdaRuntime, Code: &v1alpha1.Code{Inline: "def handler(e, c): return e"}},
	}}
	var asked runtimes.Request
	answer := runtimes.Launched{Argv: []string{"/usr/bin/python3", "shim.py"}, Env: []string{"A=b"}, Dir: "/code", TaskRoot: "/task"}
	launcher := LauncherFunc(func(r runtimes.Request) (runtimes.Launched, error) {
		asked = r
		return answer, nil
	})
	got, err := programOf(f, "/instance", launcher)
	if err != nil {
		t.Fatal(err)
	}
	wantAsked := runtimes.Request{
		Runtime: f.Spec.Template.RuntimeRef.Name, Protocol: f.Spec.Template.Protocol, Handler: "app.handler", Code: f.Spec.Template.Code, WorkDir: "/instance",
	}
	if diff := cmp.Diff(wantAsked, asked); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	want := program{path: "/usr/bin/python3", argv: answer.Argv, env: answer.Env, dir: "/code", taskRoot: "/task"}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(program{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	answer.Argv = nil
	if _, err := programOf(f, "/instance", launcher); err == nil {
		t.Error("a runtime without a program is accepted")
	}
}
