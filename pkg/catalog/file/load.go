package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// load reads all functions below dir with their revisions, and removes what a crash left unfinished.
// It goes through everything before it fails, so that its error is complete.
func load(dir string) ([]record, error) {
	namespaces, err := listVisible(dir)
	if err != nil {
		return nil, err
	}
	var functions []record
	var errs []error
	for _, ns := range namespaces {
		nsDir := filepath.Join(dir, ns.Name())
		if !ns.IsDir() {
			errs = append(errs, fmt.Errorf("%s: is not the folder of a namespace; move it out of %s", nsDir, dir))
			continue
		}
		files, err := listVisible(nsDir)
		errs = append(errs, err)
		for _, file := range files {
			r, err := loadFile(nsDir, file.Name())
			if err != nil {
				errs = append(errs, err)
				continue
			}
			functions = append(functions, r)
		}
	}
	return functions, errors.Join(errs...)
}

// listVisible lists a folder without hidden files, which are other programs' own,
// and removes this package's unfinished ones.
func listVisible(dir string) ([]os.DirEntry, error) {
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

func loadFile(nsDir, name string) (record, error) {
	path := filepath.Join(nsDir, name)
	base, ok := strings.CutSuffix(name, extension)
	if !ok {
		return record{}, fmt.Errorf("%s: is not a function, whose file ends with %s; move it out of %s", path, extension, nsDir)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return record{}, fmt.Errorf("cannot read a function; see to the rights of the file, or remove it and apply the function again: %w", err)
	}
	f, revisions, err := v1alpha1.DecodeHistory(text, path)
	if err != nil {
		return record{}, invalidFile(path, err)
	}
	state := rollout.StateOf(f)
	f.Status = v1alpha1.FunctionStatus{}
	state.Write(&f.Status)
	v1alpha1.Default(f)
	r := record{fn: f, revisions: revisions}
	if err := r.checkFile(invocation.FunctionKey{Namespace: filepath.Base(nsDir), Name: base}); err != nil {
		return record{}, invalidFile(path, fmt.Errorf("%s: %w", path, err))
	}
	if problems := validate(f); len(problems) > 0 {
		var errs []error
		for _, p := range problems {
			errs = append(errs, fmt.Errorf("%s: %w", path, p))
		}
		return record{}, invalidFile(path, errors.Join(errs...))
	}
	return r, nil
}

// checkFile returns an error if the store did not write the file of this name.
func (r record) checkFile(want invocation.FunctionKey) error {
	switch f := r.fn; {
	case f.Key() != want:
		return fmt.Errorf("holds function %s, not %s", f.Key(), want)
	case f.UID == "" || f.Generation < 1:
		return errors.New("has no metadata.uid or metadata.generation, so it was not written by Windlass")
	}
	for _, revision := range r.revisions {
		if revision.UID == "" || !revision.Of(r.fn) {
			return fmt.Errorf("holds the revision %s, which is not one of function %s", revision.Name, want)
		}
	}
	return nil
}

// invalidFile adds what to do about a file that is no valid function.
func invalidFile(path string, err error) error {
	return fmt.Errorf("%w\n%s: correct this file, or remove it and apply the function again", err, path)
}
