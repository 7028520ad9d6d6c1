package lambdaclients

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Client is a runtime client as its makers publish it.
type Client struct {
	// Name of the program that must be installed.
	Name string
	// install puts the client into an empty folder.
	install func(ctx context.Context, folder string) *exec.Cmd
	// command runs the client that is in folder.
	command func(folder, handler string) []string
	// ErrorType is what the language calls the error of the handler.
	ErrorType string
}

// All are the clients for Python and Node.js.
var All = []Client{
	{
		Name: "python3",
		install: func(ctx context.Context, folder string) *exec.Cmd {
			const script = `python3 -m venv "$0" && "$0/bin/python" -m pip install --quiet --disable-pip-version-check "awslambdaric>=4,<5"`
			return exec.CommandContext(ctx, "sh", "-c", script, folder)
		},
		command: func(folder, handler string) []string {
			return []string{filepath.Join(folder, "bin", "python"), "-m", "awslambdaric", handler}
		},
		ErrorType: "ValueError",
	},
	{
		Name: "node",
		install: func(ctx context.Context, folder string) *exec.Cmd {
			return exec.CommandContext(ctx, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "aws-lambda-ric@4")
		},
		command: func(folder, _ string) []string {
			return []string{"node", filepath.Join(folder, "node_modules", "aws-lambda-ric", "index.mjs")}
		},
		ErrorType: "Error",
	},
}

// Install installs the client, once for all runs of the tests, and returns the
// command that runs a handler with it.
func (c Client) Install(t testing.TB, handler string) []string {
	t.Helper()
	return c.command(c.folder(t), handler)
}

func (c Client) folder(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath(c.Name); err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatalf("no folder to install the runtime client in: %v", err)
	}
	parent := filepath.Join(cache, "windlass-test", "lambda-"+c.Name)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(parent, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	folder, complete := filepath.Join(parent, "4"), filepath.Join(parent, "4.complete")
	if _, err := os.Stat(complete); err == nil {
		return folder
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if out, err := c.install(ctx, folder).CombinedOutput(); err != nil {
		t.Fatalf("the runtime client cannot be installed here: %v\n%s", err, out)
	}
	if err := os.WriteFile(complete, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return folder
}
