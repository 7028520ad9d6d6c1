// Command listings writes the names of all deciders and runtimes wherever they are listed:
// into the API's Go code, the chart, and the docs. The lists themselves are
// pkg/autoscaler/registry.go and internal/runtimes/registry.go.
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/windlass-dev/windlass/internal/runtimes"
	"github.com/windlass-dev/windlass/pkg/autoscaler"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: listings FOLDER; run it in the checkout, \".\" changes that")
		os.Exit(2)
	}
	if err := write(os.DirFS("."), os.Args[1], lists{autoscaler.All(), runtimes.Names()}); err != nil {
		fmt.Fprintln(os.Stderr, "listings:", err)
		os.Exit(1)
	}
}

// write puts what render makes of a checkout below a folder.
func write(checkout fs.FS, out string, l lists) error {
	files, err := render(checkout, l)
	for _, f := range files {
		name := filepath.Join(out, filepath.FromSlash(f.name))
		err = errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(f.text), 0o644)) //nolint:gosec // Sources.
	}
	return err
}
