package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
)

// Exit codes.
const (
	exitOK       = 0
	exitFunction = 1
	exitUsage    = 2
	// exitPlatform says that a function that was called did not run.
	exitPlatform = 3
	// exitMaybe says that it may have run, and that its answer is not known.
	exitMaybe = 4
	// exitTimeout says that the timeout expired before what the command waits for came. It
	// may still come.
	exitTimeout = 5
)

// exitCodes are the exit codes in the help.
const exitCodes = `Exit codes: 0 done; 1 the function answered with an error, or diff, validate or
doctor found something; 2 wrong flags, arguments or manifest; 3 Windlass cannot be
reached, refused, or failed, and a called function did not run; 4 a called function
may have run; 5 the time to wait was over.`

// exitError is an error that knows its exit code.
type exitError struct {
	code int
	err  error
	// noUsage says that the flags were right and what they name was not, so
	// that the usage would not help.
	noUsage bool
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// inputError is about what the flags name: a manifest, a file.
func inputError(err error) error {
	return &exitError{code: exitUsage, err: err, noUsage: true}
}

func functionErrorf(format string, args ...any) error {
	return &exitError{code: exitFunction, err: fmt.Errorf(format, args...)}
}

func maybef(format string, args ...any) error {
	return &exitError{code: exitMaybe, err: fmt.Errorf(format, args...)}
}

func timeoutf(format string, args ...any) error {
	return &exitError{code: exitTimeout, err: fmt.Errorf(format, args...)}
}

// classify gives an error from a command's work its exit code.
func classify(err error) error {
	var known *exitError
	if errors.As(err, &known) {
		return err
	}
	var problem *localapi.Error
	if errors.As(err, &problem) && (problem.Reason == localapi.ReasonInvalid || problem.Reason == localapi.ReasonTooLarge) {
		return inputError(err)
	}
	// The Windlass of windlass up runs in this process.
	var invalid *file.InvalidError
	if errors.As(err, &invalid) || kubeclient.Is(err, kubeclient.ReasonInvalid) {
		return inputError(err)
	}
	return &exitError{code: exitPlatform, err: err}
}

// report prints an error of a command and returns its exit code.
func (a *app) report(cmd *cobra.Command, err error) int {
	var known *exitError
	if !errors.As(err, &known) {
		known = &exitError{code: exitUsage, err: err}
	}
	text := err.Error()
	if a.byDefault && (kubeclient.Is(err, kubeclient.ReasonUnreachable) || kubeclient.Is(err, kubeclient.ReasonNotInstalled)) {
		text += "\n" + noneHere
	}
	fmt.Fprintf(a.Err, "%s %s\n", a.paint(a.Err, red, "windlass:"), a.rewriteCommands(printable(text)))
	if known.code == exitUsage && !known.noUsage {
		fmt.Fprintf(a.Err, "usage: %s\nsee %s --help\n", cmd.UseLine(), cmd.CommandPath())
	}
	return known.code
}

// valueApart is the error of an argument that was meant as the value of a given flag. One that can
// go without a value takes it behind a = only. It is nil if no argument is such a value.
func valueApart(cmd *cobra.Command, args []string) (err error) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if flag.NoOptDefVal == "" || flag.Value.String() != flag.NoOptDefVal {
			return
		}
		for _, arg := range args {
			_, noDuration := time.ParseDuration(arg)
			kind := flag.Value.Type()
			if kind == "duration" && noDuration == nil || kind == "bool" && (arg == "true" || arg == "false") {
				err = usagef("--%s takes its value behind a =; write --%s=%s", flag.Name, flag.Name, arg)
			}
		}
	})
	return err
}

// flagError says in plain words what is wrong with a flag.
func flagError(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return usagef("%v", err)
	}
	name, value := "--"+invalid.GetFlag().Name, invalid.GetValue()
	switch kind := invalid.GetFlag().Value.Type(); kind {
	case "duration":
		if d, err := time.ParseDuration(value); err == nil && d < 0 {
			return usagef("%s %q is negative; it must be positive, for example %s", name, value, strings.TrimPrefix(value, "-"))
		}
		if _, err := strconv.ParseUint(value, 10, 64); err == nil {
			return usagef("%s %q is not a duration; write for example %ss", name, value, value)
		}
		if _, whole := invalid.GetFlag().Value.(*durationFlag); whole {
			return usagef("%s %w", name, errors.Unwrap(invalid))
		}
		return usagef("%s %q is not a duration; write for example 30s", name, value)
	case "bool":
		return usagef("%s=%s is neither true nor false; write one of the two, or %s alone for true", name, value, name)
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		if errors.Is(err, strconv.ErrRange) {
			return usagef("%s %s is too large or too small; write a number that makes sense there", name, value)
		}
		return usagef("%s %q is not a whole number; write for example 3", name, value)
	case "float32", "float64":
		return usagef("%s %q is not a number; write for example 0.5", name, value)
	}
	return usagef("%s %q: %v", name, value, errors.Unwrap(invalid))
}
