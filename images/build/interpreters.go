package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// python is the content of a runtime for Python: this machine's interpreter
// with its standard library, and the shim in its compiled form.
func python(version string) content {
	return func(ctx context.Context, o options, im *image) error {
		if err := im.addVersion(ctx, o, o.python, version); err != nil {
			return fmt.Errorf("%w: install the Debian package python3, or give -python", err)
		}
		return addPython(ctx, o, im)
	}
}

func addPython(ctx context.Context, o options, im *image) error {
	library, err := output(ctx, o.python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))")
	if err != nil {
		return err
	}
	library = strings.TrimSpace(library)
	if err := im.files.addFolder(library, library, unneeded); err != nil {
		return err
	}
	extensions, err := filepath.Glob(filepath.Join(library, "lib-dynload", "*.so"))
	if err != nil {
		return err
	}
	if err := im.addInterpreter(ctx, o.python, extensions...); err != nil {
		return err
	}
	return addPythonShim(ctx, o, im.files)
}

// unneeded tells what functions can do without in Python's standard library:
// tests, tools for developers, and windows. Everything else stays, with its
// compiled form.
func unneeded(below string) bool {
	top, _, _ := strings.Cut(below, "/")
	switch top {
	case "ensurepip", "idlelib", "lib2to3", "pydoc_data", "sitecustomize.py", "tkinter", "turtledemo", "site-packages", "dist-packages":
		return true
	}
	base := path.Base(below)
	return strings.HasPrefix(top, "config-") || base == "test" || base == "tests" ||
		strings.HasPrefix(base, "_test") || strings.HasPrefix(base, "_ctypes_test") ||
		strings.HasSuffix(base, ".opt-1.pyc") || strings.HasSuffix(base, ".opt-2.pyc")
}

// addPythonShim does what the Dockerfile does.
func addPythonShim(ctx context.Context, o options, files tree) error {
	stage, err := os.MkdirTemp("", "windlass-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(stage) }()
	shim := filepath.Join(stage, "runtime")
	if err := os.CopyFS(shim, os.DirFS(filepath.Join(o.source, "internal", "runtimes", "shims", "python3"))); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(shim, "__pycache__")); err != nil {
		return err
	}
	if _, err := output(ctx, o.python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
		"-s", stage, "-p", "/", shim); err != nil {
		return err
	}
	return addShim(files, shim)
}

// nodejs is the content of a runtime for JavaScript.
func nodejs(version string) content {
	return func(ctx context.Context, o options, im *image) error {
		if err := im.addVersion(ctx, o, o.node, version); err != nil {
			return fmt.Errorf("%w: install the Debian package nodejs, or give -node", err)
		}
		program, err := exec.LookPath(o.node)
		if err != nil {
			return err
		}
		if err := im.addInterpreter(ctx, program); err != nil {
			return err
		}
		return addShim(im.files, filepath.Join(o.source, "internal", "runtimes", "shims", "nodejs"))
	}
}

// numbers is the version in "Python 3.13.1" and "v22.9.0".
var numbers = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)

// addVersion says in the label dev.windlass.interpreter which version the image holds, and
// refuses one that is not the version in the image's name, unless any will do.
func (im *image) addVersion(ctx context.Context, o options, program, want string) error {
	if o.arch != runtime.GOARCH {
		return fmt.Errorf("the image is made of this machine's interpreter, which is not for %s; use its Dockerfile", o.arch)
	}
	said, err := output(ctx, program, "--version")
	if err != nil {
		return err
	}
	got := numbers.FindString(said)
	if got != want && !strings.HasPrefix(got, want+".") && !o.anyVersion {
		return fmt.Errorf("the name of the image promises %s, and %s is %s; use its Dockerfile, or for tests -any-version", want, program, strings.TrimSpace(said))
	}
	im.config.Labels["dev.windlass.interpreter"] = got
	return nil
}

// addShim copies a shim without the times of its files, which are those of the
// checkout.
func addShim(files tree, from string) error {
	if err := files.addFolder("/runtime", from, func(string) bool { return false }); err != nil {
		return err
	}
	for name, e := range files {
		if strings.HasPrefix(name, "runtime/") {
			files[name] = entry{mode: e.mode, content: e.content}
		}
	}
	return nil
}

// addInterpreter adds a program and all libraries that it and its extensions
// are linked to, at the paths that they have here, and puts its folder on the
// PATH.
func (im *image) addInterpreter(ctx context.Context, program string, extensions ...string) error {
	listed, err := output(ctx, "ldd", append([]string{program}, extensions...)...)
	if err != nil {
		return err
	}
	libraries, err := librariesIn(listed)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	for _, library := range libraries {
		if err := im.files.addFile(library, library, 0o755); err != nil {
			return err
		}
	}
	name := path.Base(program)
	im.config.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin"}, im.config.Env...)
	resolved, err := filepath.EvalSymlinks(program)
	if err != nil {
		return err
	}
	if resolved != "/usr/bin/"+name {
		// An interpreter finds its library by the path that it really has.
		im.files.add("/usr/bin/"+name, entry{mode: fs.ModeSymlink | 0o777, link: resolved})
	}
	return im.files.addFile(resolved, resolved, 0o755)
}

// librariesIn reads what ldd says of one or more programs.
func librariesIn(listed string) ([]string, error) {
	var found []string
	for line := range strings.Lines(listed) {
		line = strings.TrimSpace(line)
		name, file, linked := strings.Cut(line, " => ")
		switch {
		case linked && strings.HasPrefix(file, "not found"):
			return nil, fmt.Errorf("the library %s is not installed", name)
		case linked:
			line = file
		case strings.HasSuffix(line, ":") || !strings.HasPrefix(line, "/"):
			continue // the name of a program, or what the kernel provides
		}
		file, _, _ = strings.Cut(line, " (")
		found = append(found, file)
	}
	return found, nil
}

// output runs a program and returns its standard output.
func output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	// Otherwise what Python compiles may differ from run to run.
	cmd.Env = append(os.Environ(), "PYTHONHASHSEED=0")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", program, err, complaint.String())
	}
	return string(out), nil
}
