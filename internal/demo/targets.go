package demo

import (
	_ "embed"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/replay"
	"github.com/windlass-dev/windlass/internal/runtimes"
)

//go:embed targets.yaml
var targetManifests []byte

// classes are the longest durations of the targets; the others have no bound.
var classes = map[string]time.Duration{
	"node-5ms":    5 * time.Millisecond,
	"go-5ms":      5 * time.Millisecond,
	"python-20ms": 20 * time.Millisecond,
	"go-50ms":     50 * time.Millisecond,
}

// targets are the functions that represent those of the trace, and how each is called.
// Functions whose language is not installed are left out and named.
func targets(root string) (functions []*v1alpha1.Function, calls []replay.Target, leftOut []string, err error) {
	all, err := v1alpha1.Decode(targetManifests, "targets.yaml")
	if err != nil {
		return nil, nil, nil, err
	}
	for _, fn := range all {
		if err := cannotRun(fn, ""); err != nil {
			leftOut = append(leftOut, fmt.Sprintf("%s (%v)", fn.Name, err))
			continue
		}
		v1alpha1.ResolvePaths(fn, root)
		functions = append(functions, fn)
		calls = append(calls, target(fn))
	}
	return functions, calls, leftOut, nil
}

// target is how a function is made to compute for a duration.
func target(fn *v1alpha1.Function) replay.Target {
	t := replay.Target{Function: fn.Name, UpTo: classes[fn.Name]}
	if fn.Spec.Template.RuntimeRef.Name == "" {
		t.Method = http.MethodGet
		t.Path = func(d time.Duration) string {
			return fmt.Sprintf("/function/%s?ms=%.3f", fn.Name, milliseconds(d))
		}
		return t
	}
	t.Method = http.MethodPost
	t.Path = func(time.Duration) string { return "/function/" + fn.Name }
	t.Header = http.Header{"Content-Type": {"application/json"}}
	t.Body = func(d time.Duration) []byte { return fmt.Appendf(nil, `{"ms":%.3f}`, milliseconds(d)) }
	return t
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// sample is one call of an example function.
type sample struct {
	function string
	method   string
	path     string
	body     string // file in the examples' folder, or text
}

// samples are the calls that the examples' README shows.
var samples = []sample{
	{"hello", http.MethodPost, "/function/hello", `{"name": "Ada"}`},
	{"thumbnail", http.MethodPost, "/function/thumbnail?width=200", "inputs/harbour.jpg"},
	{"markdown", http.MethodPost, "/function/markdown", "inputs/notes.md"},
	{"fib", http.MethodGet, "/function/fib?n=30", ""},
	{"search", http.MethodGet, "/function/search?q=patent", ""},
	{"clock", http.MethodGet, "/function/clock?zone=Asia/Tokyo", ""},
}

// examples are the functions of a folder of examples; those that were not prepared,
// or whose language is not installed, are left out and named.
func examples(dir string) (functions []*v1alpha1.Function, leftOut []string, err error) {
	for _, s := range samples {
		manifest := filepath.Join(dir, s.function, "function.yaml")
		text, err := os.ReadFile(manifest)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: run the demo from the top of the project, or name the examples with --examples", err)
		}
		decoded, err := v1alpha1.Decode(text, manifest)
		if err != nil {
			return nil, nil, err
		}
		folder, err := filepath.Abs(filepath.Dir(manifest))
		if err != nil {
			return nil, nil, err
		}
		if missing := unprepared(folder); missing != "" {
			leftOut = append(leftOut, s.function+" ("+missing+" is missing: make examples)")
			continue
		}
		for _, fn := range decoded {
			if err := cannotRun(fn, folder); err != nil {
				leftOut = append(leftOut, fmt.Sprintf("%s (%v)", fn.Name, err))
				continue
			}
			v1alpha1.ResolvePaths(fn, folder)
			functions = append(functions, fn)
		}
	}
	return functions, leftOut, nil
}

// cannotRun says why this machine cannot run a function with its code in folder, if it cannot.
// An empty folder stands for code that brings no interpreter.
func cannotRun(fn *v1alpha1.Function, folder string) error {
	t := fn.Spec.Template
	if t.RuntimeRef.Name != "" {
		_, err := runtimes.Interpreter(t.RuntimeRef.Name, folder)
		return err
	}
	if len(t.Command) == 0 || strings.Contains(t.Command[0], "/") {
		return nil
	}
	_, err := exec.LookPath(t.Command[0])
	return err
}

// unprepared names what an example's folder lacks, if anything.
func unprepared(folder string) string {
	for declared, installed := range map[string]string{"requirements.txt": ".venv", "package.json": "node_modules"} {
		if exists(filepath.Join(folder, declared)) && !exists(filepath.Join(folder, installed)) {
			return installed
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
