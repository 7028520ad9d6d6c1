package lambdaclients

import (
	"path/filepath"
	"testing"

	"github.com/windlass-dev/windlass/internal/published"
)

// Client is a runtime client as its makers publish it.
type Client struct {
	// Name of the language's program.
	Name    string
	program published.Program
	// command runs the client that is in folder.
	command func(folder, handler string) []string
	// ErrorType is what the language calls the error of the handler.
	ErrorType string
}

// All are the clients for Python and Node.js.
var All = []Client{
	{
		Name: "python3", program: published.PyPI("awslambdaric", ">=4,<5"),
		command: func(folder, handler string) []string {
			return []string{filepath.Join(folder, "bin", "python"), "-m", "awslambdaric", handler}
		},
		ErrorType: "ValueError",
	},
	{
		Name: "node", program: published.NPM("aws-lambda-ric", "4"),
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
	folder, err := c.program.Folder()
	if err != nil {
		t.Fatal(err)
	}
	return c.command(folder, handler)
}
