// Command benchpeer is what windlass bench compares with and what it calls: a function, proxies,
// and the load. It is a program of its own, and a small one; see internal/bench/peers.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/windlass-dev/windlass/internal/bench/peers"
)

func main() {
	if err := peers.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Getenv); err != nil {
		fmt.Fprintln(os.Stderr, peers.Program+":", err)
		os.Exit(1)
	}
}
