package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binFolder has the programs of a workspace.
const binFolder = "bin"

// Workspace makes a folder for temporary files with the programs that a lab runs in it, and
// further functions, which are packages such as ./test/clients/peer. It is to be called at
// the root of the module. Remove removes the folder, unless it is to be kept: then this says
// where it is.
func Workspace(name string, keep bool, functions ...string) (dir string, remove func(), err error) {
	if dir, err = os.MkdirTemp("", "windlass-"+name+"-"); err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if err := build(filepath.Join(dir, binFolder), functions); err != nil {
		remove()
		return "", nil, err
	}
	if keep {
		fmt.Fprintf(os.Stderr, "%s: logs are below %s\n", name, dir)
		remove = func() {}
	}
	return dir, remove, nil
}

// build builds the programs that a lab runs, its function and further ones, into a folder.
func build(into string, functions []string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, program := range append([]string{"./cmd/windlass", "./cmd/podagent", "./test/lab/function"}, functions...) {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", into+"/", program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s (run this at the root of the module): %w: %s", program, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
