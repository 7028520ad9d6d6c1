package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// load reads all functions below dir, and removes what a crash left unfinished.
// It goes through everything before it fails, so that its error is complete.
func load(dir string) ([]*v1alpha1.Function, error) {
	namespaces, err := visible(dir)
	if err != nil {
		return nil, err
	}
	var functions []*v1alpha1.Function
	var errs []error
	for _, ns := range namespaces {
		nsDir := filepath.Join(dir, ns.Name())
		if !ns.IsDir() {
			errs = append(errs, fmt.Errorf("%s: is not the folder of a namespace; move it out of %s", nsDir, dir))
			continue
		}
		files, err := visible(nsDir)
		errs = append(errs, err)
		for _, file := range files {
			f, err := loadFile(nsDir, file.Name())
			if err != nil {
				errs = append(errs, err)
				continue
			}
			functions = append(functions, f)
		}
	}
	return functions, errors.Join(errs...)
}

// visible lists a folder without hidden files, which are other programs' own,
// and removes this package's unfinished ones.
func visible(dir string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot list the functions; see to the rights of the folder: %w", err)
	}
	var shown []os.DirEntry
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case !strings.HasPrefix(name, "."):
			shown = append(shown, entry)
		case strings.HasSuffix(name, unfinished) && strings.Contains(name, extension+"."):
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return nil, fmt.Errorf("cannot remove a file that was never finished; remove it by hand: %w", err)
			}
		}
	}
	return shown, nil
}

func loadFile(nsDir, name string) (*v1alpha1.Function, error) {
	path := filepath.Join(nsDir, name)
	base, ok := strings.CutSuffix(name, extension)
	if !ok {
		return nil, fmt.Errorf("%s: is not a function, whose file ends with %s; move it out of %s", path, extension, nsDir)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read a function; see to the rights of the file, or remove it and apply the function again: %w", err)
	}
	functions, err := v1alpha1.Decode(text, path)
	if err != nil {
		return nil, broken(path, err)
	}
	f := functions[0]
	want := invoke.FunctionKey{Namespace: filepath.Base(nsDir), Name: base}
	switch {
	case len(functions) != 1:
		return nil, broken(path, fmt.Errorf("%s: holds %d functions, not one", path, len(functions)))
	case f.Key() != want:
		return nil, broken(path, fmt.Errorf("%s: holds function %s, not %s", path, f.Key(), want))
	case f.UID == "" || f.Generation < 1:
		return nil, broken(path, fmt.Errorf("%s: has no metadata.uid or metadata.generation, so it was not written by Windlass", path))
	}
	f.Status = v1alpha1.FunctionStatus{}
	v1alpha1.Default(f)
	if problems := validate(f); len(problems) > 0 {
		var errs []error
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s: %w", path, p))
		}
		return nil, broken(path, errors.Join(errs...))
	}
	return f, nil
}

// broken adds what to do about a file that is no valid function.
func broken(path string, err error) error {
	return fmt.Errorf("%w\n%s: correct this file, or remove it and apply the function again", err, path)
}
