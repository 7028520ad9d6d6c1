package runtimes

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// spareSources hold the same handler in each language, by the name of its file: it
// tells of where it is.
var spareSources = map[v1alpha1.RuntimeName]adapter.File{
	v1alpha1.RuntimePython313: {Path: "pkg/app.py", Content: []byte(`
import os, sys, time
print("loaded")

def handler(event, context):
    return [os.environ["GREETING"], os.environ.get("WINDLASS_SPARE"), os.path.realpath(os.getcwd()), open("data/word.txt").read(),
            os.environ["LAMBDA_TASK_ROOT"], context.function_name, time.strftime("%H", time.localtime(0))]
`)},
	v1alpha1.RuntimeNodeJS22: {Path: "pkg/app.js", Content: []byte(`
import fs from 'node:fs';
console.log('loaded');

export const handler = async (event, context) =>
  [process.env.GREETING, process.env.WINDLASS_SPARE ?? null, fs.realpathSync('.'), fs.readFileSync('data/word.txt', 'utf8'),
   process.env.LAMBDA_TASK_ROOT, context.functionName, String(new Date(0).getHours()).padStart(2, '0')];
`)},
}

// handover is an assignment as the Runtime API tells it.
type handover struct {
	Variables []adapter.Variable `json:"variables"`
	Files     []adapter.File     `json:"files"`
}

func (h handover) text(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// startSpare runs the shim of a spare instance, as an image does.
func startSpare(t *testing.T, api *fakeAPI, runtime v1alpha1.RuntimeName, root string, env ...string) *shim {
	t.Helper()
	return startBare(t, runtime, append(api.env(), append([]string{"WINDLASS_SPARE=true", "LAMBDA_TASK_ROOT=" + root}, env...)...)...)
}

func TestASpareInstanceBecomesAFunctions(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api, root := newFakeAPI(t), filepath.Join(t.TempDir(), "task")
		s := startSpare(t, api, runtime, root)
		receive(t, "the request for the assignment", api.asked)
		api.assignments <- handover{
			Variables: []adapter.Variable{
				{Name: "_HANDLER", Value: "pkg/app.handler"}, {Name: "GREETING", Value: "no"}, {Name: "GREETING", Value: "ahoy"},
				{Name: "LAMBDA_TASK_ROOT", Value: "/var/task"}, {Name: "AWS_LAMBDA_FUNCTION_NAME", Value: "sailor"},
				{Name: "TZ", Value: "UTC-5"},
			},
			Files: []adapter.File{spareSources[runtime], {Path: "data/word.txt", Content: []byte("☂")}},
		}.text(t)
		resolved, err := filepath.EvalSymlinks(filepath.Dir(root))
		if err != nil {
			t.Fatal(err)
		}
		got := api.call(t, event{id: "1"})
		if want := `["ahoy",null,"` + resolved + `/task","☂","` + root + `","sailor","05"]`; compact(t, got.body) != want {
			t.Errorf("got %+v, want %s", got, want)
		}
		s.terminate()
		s.expectExit(0)
		if line := receive(t, "a line", s.stdout); line != "loaded" || len(s.stdout) > 0 {
			t.Errorf("the handler was loaded more than once, or not: %q", line)
		}
		if said := s.errors(); said != "" {
			t.Errorf("standard error says %q, want nothing", said)
		}
		if n := api.connections.Load(); n != 1 || len(api.asked) > 0 {
			t.Errorf("%d connections were made and the assignment was asked for %d times more, want 1 and 0", n, len(api.asked))
		}
	})
}

func TestASpareInstanceServesConcurrently(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		startSpare(t, api, runtime, t.TempDir())
		name := map[v1alpha1.RuntimeName]string{v1alpha1.RuntimePython313: "app.py", v1alpha1.RuntimeNodeJS22: "app.js"}[runtime]
		api.assignments <- handover{
			Variables: []adapter.Variable{{Name: "_HANDLER", Value: "app.handler"}, {Name: "AWS_LAMBDA_MAX_CONCURRENCY", Value: "4"}},
			Files:     []adapter.File{{Path: name, Content: []byte(lambdaSources[runtime])}},
		}.text(t)
		for range 4 {
			api.events <- event{id: "meet", body: `{"do":"meet"}`} // answered when all four have come
		}
		for range 4 {
			if got := receive(t, "a result", api.results); got.kind != "response" {
				t.Errorf("got %+v", got)
			}
		}
	})
}

func TestAnAssignmentThatCannotBeTakenIsAnInitError(t *testing.T) {
	file := func(path string) handover { return handover{Files: []adapter.File{{Path: path, Content: []byte("x")}}} }
	blocked := handover{Files: []adapter.File{{Path: "a", Content: []byte("x")}, {Path: "a/b", Content: []byte("x")}}}
	lost := handover{Variables: []adapter.Variable{{Name: "_HANDLER", Value: "gone.handler"}}}
	for _, c := range []struct {
		name, says, errorType string
		given                 *handover
	}{
		{"a path upwards", "../app.py", "Runtime.BadAssignment", ptr(file("../app.py"))},
		{"a path upwards in between", "a/../../b", "Runtime.BadAssignment", ptr(file("a/../../b"))},
		{"an absolute path", "/app.py", "Runtime.BadAssignment", ptr(file("/app.py"))},
		{"a backslash", `app.py`, "Runtime.BadAssignment", ptr(file(`..\app.py`))},
		{"no path", "not below the folder", "Runtime.BadAssignment", ptr(file(""))},
		{"a file that is a folder too", "cannot be written", "Runtime.BadAssignment", &blocked},
		{"one that somebody has", "410", "Runtime.BadAssignment", nil},
		{"no such module", "gone", "Runtime.ImportModuleError", &lost},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
				api, dir := newFakeAPI(t), t.TempDir()
				s := startSpare(t, api, runtime, filepath.Join(dir, "task"))
				text := ""
				if c.given != nil {
					text = handover{append([]adapter.Variable{}, c.given.Variables...), append([]adapter.File{}, c.given.Files...)}.text(t)
				}
				api.assignments <- text
				got := receive(t, "the report", api.results)
				if got.kind != "init/error" || got.errorType != c.errorType {
					t.Errorf("got %+v, want an init error of type %s", got, c.errorType)
				}
				checkReport(t, got, c.says)
				s.expectExit(1)
				if left, err := os.ReadDir(dir); err != nil || len(left) > 1 {
					t.Errorf("beside the folder of the code there is %v, %v", left, err)
				}
			})
		})
	}
}

func ptr[T any](v T) *T { return &v }

func TestASpareInstanceThatIsStoppedEnds(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startSpare(t, api, runtime, t.TempDir())
		receive(t, "the request for the assignment", api.asked)
		s.terminate()
		s.expectExit(0)
		if said := s.errors(); said != "" {
			t.Errorf("standard error says %q, want nothing", said)
		}
	})
}

func TestA3ASpareInstanceWhoseAgentEndedSaysNothing(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startSpare(t, api, runtime, t.TempDir())
		receive(t, "the request for the assignment", api.asked)
		close(api.over)
		s.expectExit(0)
		if said := s.errors(); said != "" {
			t.Errorf("standard error says %q, want nothing", said)
		}
	})
}

func TestASpareInstanceWhoseAgentIsGoneEnds(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startSpare(t, api, runtime, t.TempDir())
		receive(t, "the request for the assignment", api.asked)
		api.server.CloseClientConnections()
		s.expectError("the Runtime API is lost")
		s.expectExit(1)
	})
}

func TestASpareInstanceThatCannotBeOneSaysWhy(t *testing.T) {
	eachLanguage(t, func(t *testing.T, runtime v1alpha1.RuntimeName) {
		api := newFakeAPI(t)
		s := startSpare(t, api, runtime, t.TempDir(), "WINDLASS_PROTOCOL=HTTP", "PORT=1")
		s.expectExit(1)
		s.expectError("must have LambdaRuntime")

		s = startSpare(t, api, runtime, "")
		got := receive(t, "the report", api.results)
		if got.kind != "init/error" || !strings.Contains(got.body, "LAMBDA_TASK_ROOT is not set") {
			t.Errorf("got %+v", got)
		}
		s.expectExit(1)
	})
}
