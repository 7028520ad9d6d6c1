package kubeclient

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/runtimes"
)

// maxFiles is the largest folder in bytes that fits into a ConfigMap of 1 MiB,
// with its names and the rest.
const maxFiles = 900_000

// remedy is for code that neither a Function nor a ConfigMap can hold.
const remedy = "build an image that holds it, and deploy that with image: or --image"

// fileName is what a key of a ConfigMap may be.
var fileName = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

// pack reads the code that spec.template.code.path names. The one file that the handler
// needs is inline; anything else is files by name.
func pack(spec *v1alpha1.FunctionSpec) (inline string, files map[string]string, err error) {
	path := spec.Template.Code.Path
	if files, err = readCode(path); err != nil {
		return "", nil, fmt.Errorf("spec.template.code.path: %w", err)
	}
	candidates, known := runtimes.Candidates(spec.Template.RuntimeRef.Name, spec.Template.Handler)
	if !known {
		return "", files, nil
	}
	if source, ok := files[candidates[0]]; ok && len(files) == 1 && len(source) <= v1alpha1.MaxInlineCode {
		return source, nil, nil
	}
	for _, name := range candidates {
		if _, ok := files[name]; ok {
			return "", files, nil
		}
	}
	return "", nil, fmt.Errorf("spec.template.handler: %s needs the file %s, and %s holds %s: correct the handler or the path",
		spec.Template.Handler, candidates[0], path, strings.Join(slices.Sorted(maps.Keys(files)), ", "))
}

// readCode reads a file, or the files of a folder without any below it.
func readCode(path string) (map[string]string, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: there is no such file or folder; check the path", path)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w; see to its rights", path, err)
	}
	files := map[string]string{}
	if !info.IsDir() {
		return files, addFile(files, path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w; see to its rights", path, err)
	}
	for _, entry := range entries {
		if isLeftOut(entry.Name()) {
			continue
		}
		if err := addFile(files, filepath.Join(path, entry.Name())); err != nil {
			return nil, err
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s is empty; name the folder that holds the code", path)
	}
	return files, nil
}

// isLeftOut says what of a folder is no part of the code. The packages of npm are needed to run it:
// without the error that addFile has for a folder, instances would fail in the cluster.
func isLeftOut(name string) bool { return v1alpha1.IsLeftOut(name) && name != v1alpha1.NodeModules }

// addFile reads a file, unless it is the manifest of a Function.
func addFile(files map[string]string, path string) error {
	name := filepath.Base(path)
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %s: %w; see to its rights", path, err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder, and only the files of one folder can be sent to a cluster; remove it, or %s", path, remedy)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file; remove it, or %s", path, remedy)
	case info.Size() > maxFiles:
		return tooBig(path)
	case !fileName.MatchString(name):
		return fmt.Errorf("%s: a ConfigMap takes names of letters, digits, '-', '_' and '.'; rename it, or %s", path, remedy)
	}
	content, err := os.ReadFile(path)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %s: %w; see to its rights", path, err)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return fmt.Errorf("%s is not text in UTF-8; remove it, or %s", path, remedy)
	case v1alpha1.IsManifest(name, content):
		return nil
	}
	files[name] = string(content)
	total := 0
	for name, content := range files {
		total += len(name) + len(content)
	}
	if total > maxFiles {
		return tooBig(filepath.Dir(path))
	}
	return nil
}

func tooBig(path string) error {
	return fmt.Errorf("%s is larger than %d bytes, which is what a ConfigMap can hold; %s", path, maxFiles, remedy)
}

// codeName is the ConfigMap that holds the files: another one for other files.
func codeName(function string, files map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(hash, "%d %s %d %s", len(name), name, len(files[name]), files[name])
	}
	return codePrefix(function) + hex.EncodeToString(hash.Sum(nil)[:5])
}

func codePrefix(function string) string { return function + "-code-" }
