// Command functions holds programs for end-to-end tests, each a subcommand.
// They are what people bring along: none knows anything of Windlass.
//
//   - httpd serves HTTP on port 8080 at once; see its paths in httpd.go.
//   - slow-start is httpd that listens only after $SECONDS.
//   - stubborn is httpd that SIGTERM does not end.
//   - crash says why on standard error and ends with status 3.
package main

import (
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// address is where functions listen: the port that functions have by default,
// on every interface, as servers do that were not written for a sidecar.
const address = ":8080"

func main() {
	command := ""
	if len(os.Args) == 2 {
		command = os.Args[1]
	}
	switch command {
	case "httpd":
		serve()
	case "slow-start":
		seconds, err := strconv.ParseFloat(os.Getenv("SECONDS"), 64)
		if err != nil || seconds < 0 {
			log.Fatalf("SECONDS is %q; it must be a number of seconds", os.Getenv("SECONDS"))
		}
		log.Printf("warming up for %g seconds", seconds)
		<-time.After(time.Duration(seconds * float64(time.Second)))
		serve()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		serve()
	case "crash":
		fmt.Fprintln(os.Stderr, "cannot find my configuration")
		os.Exit(3)
	default:
		log.Fatal("usage: functions httpd|slow-start|stubborn|crash")
	}
}

func serve() {
	log.Printf("listening on %s", address)
	log.Fatal(http.ListenAndServe(address, handler()))
}
