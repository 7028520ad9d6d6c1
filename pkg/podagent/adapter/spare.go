package adapter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// MaxAssignment bounds the variables and files of an assignment, in bytes.
const MaxAssignment = 2 << 20

// Assignment names the function that a spare instance becomes an instance of.
type Assignment struct {
	// Namespace and Function name the function.
	Namespace string
	Function  string
	// Concurrency is how many calls the function runs at a time, at least 1.
	Concurrency int
	// Variables of the function's environment; the last of a name counts.
	Variables []Variable
	// Files are the function's code.
	Files []File
}

// Variable is a variable of the environment.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// File is a file of the function's code.
type File struct {
	// Path below the folder of the code, with slashes.
	Path    string `json:"path"`
	Content []byte `json:"content"`
}

// Spare is the Adapter of a spare instance, which has no function until it is assigned to
// one.
type Spare interface {
	// WaitRuntime returns when the runtime has loaded and waits for the assignment, or with
	// the reason why it never will; it returns early when ctx ends.
	WaitRuntime(ctx context.Context) error
	// Assign hands the function to the runtime, which loads it. It succeeds once.
	Assign(Assignment) error
	// WaitReady, as in Adapter, returns when the function has loaded.
	WaitReady(ctx context.Context) error
}

// Validate names the first part of an assignment that cannot be handed over.
func (a Assignment) Validate() error {
	switch {
	case a.Namespace == "" || a.Function == "":
		return errors.New("adapter: an assignment must name namespace and function")
	case a.Concurrency < 1:
		return fmt.Errorf("adapter: the assignment's concurrency is %d, must be at least 1", a.Concurrency)
	}
	size := 0
	for _, v := range a.Variables {
		if v.Name == "" || strings.ContainsAny(v.Name, "=\x00") || strings.Contains(v.Value, "\x00") {
			return fmt.Errorf("adapter: the assignment's variable %q cannot be set: a name is not empty and without =, and neither has a zero byte", v.Name)
		}
		size += len(v.Name) + len(v.Value)
	}
	for _, f := range a.Files {
		if f.Path == "." || !fs.ValidPath(f.Path) || strings.ContainsAny(f.Path, "\\\x00") {
			return fmt.Errorf("adapter: the assignment's file %q must be a path below the folder of the code, with slashes and no dots for folders", f.Path)
		}
		size += len(f.Path) + len(f.Content)
	}
	if size > MaxAssignment {
		return fmt.Errorf("adapter: the assignment has %d bytes, must not have more than %d", size, MaxAssignment)
	}
	return nil
}
