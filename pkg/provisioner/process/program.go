package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
)

// program is what a function's process runs.
type program struct {
	// path is the program; without a slash it is looked up on PATH.
	path string
	// argv is what the program sees as its arguments, its own name first.
	argv []string
	// env are variables that the program needs.
	env []string
	// secrets are variables that it takes from secrets.
	secrets []string
	// keys are values that single variables take from secrets, by the variable's name.
	keys map[string]string
	// dir is the working directory.
	dir string
	// taskRoot is the folder of the code.
	taskRoot string
}

// programOf says what to run for a function.
func programOf(f *v1alpha1.Function, workDir string, launcher Launcher) (program, error) {
	switch {
	case len(f.Spec.Template.Command) > 0:
		return commandProgram(f.Spec, workDir)
	case f.Spec.Template.RuntimeRef.Name != "":
		return runtimeProgram(f.Spec, workDir, launcher)
	default:
		return program{}, errors.New("the function has neither a command nor a runtime, and local mode cannot run an image: set spec.template.command or spec.template.runtimeRef.name")
	}
}

func commandProgram(spec v1alpha1.FunctionSpec, workDir string) (program, error) {
	dir := workDir
	if spec.Template.Code != nil && spec.Template.Code.Path != "" {
		path, err := filepath.Abs(spec.Template.Code.Path)
		if err != nil {
			return program{}, fmt.Errorf("spec.template.code.path: %w", err)
		}
		info, err := os.Stat(path)
		if err != nil {
			return program{}, fmt.Errorf("spec.template.code.path must be a file or a folder: %w", err)
		}
		dir = path
		if !info.IsDir() {
			dir = filepath.Dir(path)
		}
	}
	return program{
		path:     resolve(spec.Template.Command[0], dir),
		argv:     slices.Concat(spec.Template.Command, spec.Template.Args),
		dir:      dir,
		taskRoot: dir,
	}, nil
}

func runtimeProgram(spec v1alpha1.FunctionSpec, workDir string, launcher Launcher) (program, error) {
	l, err := launcher.Launch(runtimes.Request{
		Runtime:  spec.Template.RuntimeRef.Name,
		Protocol: spec.Template.Protocol,
		Handler:  spec.Template.Handler,
		Code:     spec.Template.Code,
		WorkDir:  workDir,
	})
	if err != nil {
		return program{}, err
	}
	if len(l.Argv) == 0 {
		return program{}, fmt.Errorf("the runtime %s names no program", spec.Template.RuntimeRef.Name)
	}
	dir := l.Dir
	if dir == "" {
		dir = workDir
	}
	return program{
		path:     resolve(l.Argv[0], dir),
		argv:     l.Argv,
		env:      l.Env,
		dir:      dir,
		taskRoot: l.TaskRoot,
	}, nil
}

// resolve leaves bare names for the PATH and starts relative ones at dir.
func resolve(name, dir string) string {
	if !strings.Contains(name, "/") || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(dir, name)
}
