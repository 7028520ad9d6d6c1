package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds the programs that a lab runs, and its function, into a folder. It is
// to be called at the root of the module.
func Build(into string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	for _, program := range []string{"./cmd/windlass", "./cmd/podagent", "./test/faults/function"} {
		cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", into+"/", program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s (run this at the root of the module): %w: %s", program, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
