package runtimes

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed shims
var shims embed.FS

// place makes sure that the module exists as a file, and returns the folder of
// the code.
func place(lang language, r Request, module, work string) (dir string, err error) {
	if r.Code.Inline != "" {
		dir = filepath.Join(work, "code")
		for name, content := range lang.inline(module, r.Code.Inline) {
			if err := writeFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(content)); err != nil {
				return "", err
			}
		}
		return dir, nil
	}
	given, err := filepath.Abs(r.Code.Path)
	if err != nil {
		return "", fmt.Errorf("code.path %q: %w", r.Code.Path, err)
	}
	info, err := os.Stat(given)
	if err != nil {
		return "", fmt.Errorf("code.path %s cannot be read: %w: give the path of a folder or of a file in it", given, err)
	}
	dir = given
	if !info.IsDir() {
		dir = filepath.Dir(given)
	}
	names := lang.candidates(module)
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return dir, nil
		}
	}
	return "", fmt.Errorf("handler %q needs the module %s, but %s holds none of %s: correct the handler or code.path",
		r.Handler, module, dir, strings.Join(names, ", "))
}

// writeShims writes a folder of embedded programs to dir.
func writeShims(dir, folder string) error {
	from := path.Join("shims", folder)
	entries, err := shims.ReadDir(from)
	if err != nil {
		return fmt.Errorf("the shims of %s are not embedded: %w", folder, err)
	}
	for _, entry := range entries {
		source, err := shims.ReadFile(path.Join(from, entry.Name()))
		if err != nil {
			return fmt.Errorf("the shim %s is not embedded: %w", entry.Name(), err)
		}
		if err := writeFile(filepath.Join(dir, entry.Name()), source); err != nil {
			return err
		}
	}
	return nil
}

// writeFile makes the file hold content. It replaces the file as a whole, because
// another instance may be reading it.
func writeFile(name string, content []byte) (err error) {
	if old, err := os.ReadFile(name); err == nil && bytes.Equal(old, content) {
		return nil
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("the work directory cannot be written: %w", err)
	}
	f, err := os.CreateTemp(dir, ".write-*")
	if err != nil {
		return fmt.Errorf("the work directory cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", name, err)
		}
	}()
	if _, err = f.Write(content); err != nil {
		_ = f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// localModule refuses modules that are not below the code's folder.
func localModule(handler, module, name string) error {
	if module == "" || name == "" || strings.Contains(module, `\`) ||
		!filepath.IsLocal(filepath.FromSlash(module)) || slices.Contains(strings.Split(module, "/"), "") {
		return fmt.Errorf("handler %q is not of the form module.function, such as app.handler", handler)
	}
	return nil
}
