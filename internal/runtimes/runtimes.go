package runtimes

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// Request says which handler to launch.
type Request struct {
	// Runtime is the language of the handler.
	Runtime v1alpha1.RuntimeName
	// Protocol is what the shim shall speak; empty means LambdaRuntime.
	Protocol v1alpha1.Protocol
	// Handler is "module.function". A module below the code's folder may
	// be given with slashes, as in "src/app.handler".
	Handler string
	// Code is where the module is. A relative path starts at the working
	// directory of this process, so manifests resolve theirs beforehand.
	Code *v1alpha1.Code
	// WorkDir is a folder that Launch may write to; it is created if it
	// does not exist. Launches of the same function may share it.
	WorkDir string
}

// Launched says how to run a handler.
type Launched struct {
	// Argv is the program, as an absolute path, and its arguments.
	Argv []string
	// Env are variables as NAME=value: with those of the protocol, all that the shim reads.
	Env []string
	// Dir is the working directory: the folder of the code.
	Dir string
	// TaskRoot is the value of LAMBDA_TASK_ROOT; the same as Dir.
	TaskRoot string
}

// Launch writes the shim and inline code below WorkDir and returns how to run them. Its errors
// name the missing thing and the remedy.
func Launch(r Request) (Launched, error) {
	lang, protocol, err := checkRequest(r)
	if err != nil {
		return Launched{}, err
	}
	module, err := lang.split(r.Handler)
	if err != nil {
		return Launched{}, err
	}
	work, err := filepath.Abs(r.WorkDir)
	if err != nil {
		return Launched{}, fmt.Errorf("the work directory %q: %w", r.WorkDir, err)
	}
	dir, err := place(lang, r, module, work)
	if err != nil {
		return Launched{}, err
	}
	program, err := lang.interpreter(dir)
	if err != nil {
		return Launched{}, err
	}
	shimDir := filepath.Join(work, "runtime")
	if err := writeShims(shimDir, lang.shims); err != nil {
		return Launched{}, err
	}
	return Launched{
		Argv: []string{program, filepath.Join(shimDir, lang.main)},
		Env: append([]string{
			"WINDLASS_PROTOCOL=" + string(protocol),
			"_HANDLER=" + r.Handler,
			"LAMBDA_TASK_ROOT=" + dir,
			"LAMBDA_RUNTIME_DIR=" + shimDir,
		}, lang.env...),
		Dir:      dir,
		TaskRoot: dir,
	}, nil
}

// checkRequest refuses requests that cannot be launched whatever the files say.
func checkRequest(r Request) (language, v1alpha1.Protocol, error) {
	lang, ok := languageOf(r.Runtime)
	if !ok {
		return language{}, "", unknown(r.Runtime)
	}
	protocol := r.Protocol
	if protocol == "" {
		protocol = v1alpha1.ProtocolLambdaRuntime
	}
	if protocol != v1alpha1.ProtocolLambdaRuntime && protocol != v1alpha1.ProtocolHTTP {
		return language{}, "", fmt.Errorf("the runtime %s does not speak the protocol %q: use %s or %s",
			r.Runtime, protocol, v1alpha1.ProtocolLambdaRuntime, v1alpha1.ProtocolHTTP)
	}
	if r.Code == nil || (r.Code.Inline == "") == (r.Code.Path == "") {
		return language{}, "", fmt.Errorf("the runtime %s needs code: give either code.inline or code.path", r.Runtime)
	}
	if r.WorkDir == "" {
		return language{}, "", errors.New("the work directory is missing")
	}
	return lang, protocol, nil
}

// unknown says that Windlass does not bring a runtime along, and which it does.
func unknown(name v1alpha1.RuntimeName) error {
	return fmt.Errorf("there is no runtime %q: use %s, or a command of your own", name, Choice())
}

// lookPath finds a program and otherwise says how to get it.
func lookPath(program, remedy string) (string, error) {
	found, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not on PATH: %s", program, remedy)
	}
	return filepath.Abs(found)
}
