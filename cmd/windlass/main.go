// Command windlass runs functions on this machine, and talks to what it runs.
package main

import (
	"context"
	"errors"
	"os"

	"github.com/windlass-dev/windlass/pkg/cli"
)

func main() {
	programs := cli.Programs{
		Up: func(context.Context, cli.UpConfig) error {
			return errors.New("local mode is not linked into this build")
		},
		Demo: func(context.Context, cli.DemoConfig) error {
			return errors.New("the demonstration is not linked into this build")
		},
	}
	os.Exit(cli.Main(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, programs))
}
