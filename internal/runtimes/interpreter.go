package runtimes

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
)

// askVersionFor is how long an interpreter may take to tell its version.
const askVersionFor = 10 * time.Second

// Interpreter is the program that runs functions of a runtime on this machine: the code's
// own in dir, the folder of the code, or the one on PATH. An empty dir stands for code that
// brings none. The error says how to get one, or that Windlass does not bring the runtime
// along.
func Interpreter(name v1alpha1.RuntimeName, dir string) (program string, err error) {
	l, known := languageOf(name)
	if !known {
		return "", unknown(name)
	}
	return l.interpreter(dir)
}

// Version is the version of the interpreter in the name of a runtime, such as 3.13 or 22;
// empty for one that is not built in. The runtime's image has that version.
func Version(name v1alpha1.RuntimeName) string {
	l, _ := languageOf(name)
	return l.version
}

// Difference says in a sentence that a program has another version than a runtime's name says;
// empty if it has the same, or if the name has none. It runs the program to find out.
func Difference(ctx context.Context, name v1alpha1.RuntimeName, program string) string {
	ctx, cancel := context.WithTimeout(ctx, askVersionFor)
	defer cancel()
	said, err := exec.CommandContext(ctx, program, "--version").Output()
	want := Version(name)
	if err != nil || want == "" {
		return ""
	}
	got := numbers.FindString(string(said))
	if got == "" || got == want || strings.HasPrefix(got, want+".") {
		return ""
	}
	return fmt.Sprintf("%s runs functions with the runtime %s on this machine, and its version is %s: a cluster runs them with %s", program, name, got, want)
}

// numbers is the version in "Python 3.13.1" and "v22.9.0".
var numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)
