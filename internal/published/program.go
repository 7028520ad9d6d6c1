package published

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Program is one version of a program.
type Program struct {
	name, version string
	// install puts it into an empty folder.
	install func(ctx context.Context, folder string) *exec.Cmd
}

// NPM is a package of npm, in node_modules of its folder.
func NPM(name, version string) Program {
	return Program{name: name, version: version, install: func(ctx context.Context, folder string) *exec.Cmd {
		return exec.CommandContext(ctx, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", name+"@"+version)
	}}
}

// PyPI is a package of PyPI, with a Python of its own, bin/python of its folder. The version is
// one that pip understands, such as ==1.2.3.
func PyPI(name, version string) Program {
	const script = `python3 -m venv "$0" && "$0/bin/python" -m pip install --quiet --disable-pip-version-check "$1"`
	return Program{name: name, version: version, install: func(ctx context.Context, folder string) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", script, folder, name+version)
	}}
}

// installWithin bounds one installation.
const installWithin = 5 * time.Minute

// Folder is where the program is. It is installed there once for all runs of the tests, and
// for all processes.
func (p Program) Folder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder to install %s in: %w", p.name, err)
	}
	parent := filepath.Join(cache, "windlass-test", p.name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(parent, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	folder := filepath.Join(parent, p.version)
	complete := folder + ".complete"
	if _, err := os.Stat(complete); err == nil {
		return folder, nil
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	if out, err := p.install(ctx, folder).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s cannot be installed here: %w\n%s", p.name, err, out)
	}
	return folder, os.WriteFile(complete, nil, 0o644)
}
