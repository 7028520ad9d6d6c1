// Command windlass-node is windlass with the role node alone. What the other roles need would be in the memory of
// every node: a Go program initializes all that is linked.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/windlass-dev/windlass/internal/cluster/node"
)

func main() {
	command := &cobra.Command{Use: "windlass-node", Short: "Run the node agent of a node of a cluster", SilenceUsage: true, SilenceErrors: true}
	command.AddCommand(node.NewCommand())
	if err := command.ExecuteContext(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "windlass-node:", err)
		os.Exit(1)
	}
}
