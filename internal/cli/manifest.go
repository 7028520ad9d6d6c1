package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// manifest is a Function and where it was read.
type manifest struct {
	source   string
	function *v1alpha1.Function
	lines    v1alpha1.Lines
}

// fieldPath names a field and where it was read.
func (m manifest) fieldPath(path string) string {
	if line := m.lines.Of(path); line > 0 {
		return fmt.Sprintf("%s:%d", m.source, line)
	}
	return m.source
}

var manifestExtensions = []string{".yaml", ".yml", ".json"}

// unreadableError says that there is no manifest to judge.
type unreadableError struct{ err error }

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

func unreadablef(format string, args ...any) error {
	return &unreadableError{fmt.Errorf(format, args...)}
}

// readManifests reads the Functions of files and folders, "-" being stdin. It
// reads all before it fails, so that its error is complete. What it returns has the
// shape of Functions, may not be valid, and is not defaulted.
func readManifests(paths []string, stdin io.Reader) ([]manifest, error) {
	var manifests []manifest
	var errs []error
	for _, path := range paths {
		read, err := readPath(path, stdin)
		manifests = append(manifests, read...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, inputError(errors.Join(append(errs, validateManifests(manifests, v1alpha1.Validate)...)...))
	}
	return manifests, nil
}

func readPath(path string, stdin io.Reader) ([]manifest, error) {
	if path == "-" {
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, unreadablef("cannot read the standard input: %w", err)
		}
		return decode(v1alpha1.DecodeLocated, data, "standard input", ".")
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, unreadablef("%s: there is no such file or folder; check the path, which starts at the current folder", path)
	case err != nil:
		return nil, unreadablef("cannot read %s: %w; see to its rights", path, err)
	case info.IsDir():
		return readFolder(path)
	}
	return readFile(v1alpha1.DecodeLocated, path)
}

// decoder reads the Functions of a manifest.
type decoder func(data []byte, source string) ([]v1alpha1.Located, error)

func readFile(read decoder, path string) ([]manifest, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, unreadablef("cannot read %s: %w; see to its rights", path, err)
	}
	return decode(read, data, path, filepath.Dir(path))
}

// readFolder reads every manifest below a folder, in the order of their paths.
func readFolder(root string) ([]manifest, error) {
	var manifests []manifest
	var errs []error
	visit := func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			// A root that has just gone has no entry.
			errs = append(errs, unreadablef("cannot read %s: %w; see to its rights", path, err))
			return nil
		}
		name := entry.Name()
		switch {
		case entry.IsDir():
			below := filepath.Clean(path) != filepath.Clean(root)
			if below && (v1alpha1.IsLeftOut(name) || file.IsDataFolder(path)) {
				return fs.SkipDir
			}
		case !v1alpha1.IsLeftOut(name) && slices.Contains(manifestExtensions, filepath.Ext(name)):
			// A folder with functions also holds files like package.json, and manifests of other kinds.
			read, err := readFile(v1alpha1.DecodeAmongOthers, path)
			manifests = append(manifests, read...)
			if err != nil {
				errs = append(errs, err)
			}
		}
		return nil
	}
	// The separator makes WalkDir enter a root that is a link.
	if err := filepath.WalkDir(root+string(filepath.Separator), visit); err != nil {
		errs = append(errs, err)
	}
	if len(manifests)+len(errs) == 0 {
		errs = append(errs, unreadablef("%s: no Function is in this folder; a manifest is a .yaml, .yml or .json file with apiVersion: %s and kind: %s",
			root, v1alpha1.APIVersion, v1alpha1.KindFunction))
	}
	return manifests, errors.Join(errs...)
}

func decode(read decoder, data []byte, source, dir string) ([]manifest, error) {
	functions, err := read(data, source)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	var manifests []manifest
	for _, fn := range functions {
		v1alpha1.ResolvePaths(fn.Function, dir)
		manifests = append(manifests, manifest{source: source, function: fn.Function, lines: fn.Lines})
	}
	return manifests, nil
}

// validateManifests reports everything that is wrong with the manifests.
func validateManifests(manifests []manifest, validate func(*v1alpha1.Function) field.ErrorList) []error {
	var errs []error
	first := map[invocation.FunctionKey]string{}
	for _, m := range manifests {
		errs = append(errs, validateManifest(m, validate)...)
		key := defaulted(m.function).Key()
		if source, twice := first[key]; twice {
			errs = append(errs, fmt.Errorf("%s: function %s is in %s too; remove or rename one of the two", m.fieldPath("metadata.name"), key, source))
			continue
		}
		first[key] = m.fieldPath("metadata.name")
	}
	return errs
}

// validateLocal and validateCluster say all that keeps a function from being valid
// and from running there.
func validateLocal(fn *v1alpha1.Function) field.ErrorList {
	return append(v1alpha1.Validate(fn), v1alpha1.ValidateLocal(fn)...)
}

func validateCluster(fn *v1alpha1.Function) field.ErrorList {
	return append(v1alpha1.Validate(fn), v1alpha1.ValidateCluster(fn)...)
}

// checkLocal says what keeps manifests from running on this machine.
func checkLocal(manifests []manifest) error {
	if err := errors.Join(validateManifests(manifests, validateLocal)...); err != nil {
		return inputError(err)
	}
	return nil
}

func validateManifest(m manifest, validate func(*v1alpha1.Function) field.ErrorList) []error {
	var errs []error
	fn := defaulted(m.function)
	for _, p := range validate(fn) {
		errs = append(errs, fmt.Errorf("%s: function %s: %w", m.fieldPath(p.Field), fn.Name, p))
	}
	return errs
}

func defaulted(fn *v1alpha1.Function) *v1alpha1.Function {
	fn = fn.DeepCopy()
	v1alpha1.Default(fn)
	return fn
}
