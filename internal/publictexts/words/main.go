// Command words prints all public texts on one page: "make words".
package main

import (
	"fmt"
	"os"

	"github.com/windlass-dev/windlass/internal/publictexts"
)

func main() {
	groups, err := publictexts.Gather(".")
	if err == nil {
		err = publictexts.Write(os.Stdout, groups)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}
