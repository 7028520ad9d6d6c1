// Command kubectl-windlass is the kubectl plugin: the verbs of the windlass command for the
// cluster of a kubeconfig's context, without the code that runs functions on this machine.
package main

import (
	"os"
	// Schedules have time zones, which not every machine knows.
	_ "time/tzdata"

	"github.com/windlass-dev/windlass/internal/cli"
)

func main() {
	os.Exit(cli.PluginMain(os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
