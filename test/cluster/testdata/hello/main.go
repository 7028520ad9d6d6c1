// Command hello is what the cluster's test puts into a pod: without arguments a
// server, otherwise a client that runs next to it.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 0:
		fmt.Println("hello listens")
		return http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			host, _ := os.Hostname()
			fmt.Fprintln(w, "hello from", host)
		}))
	case arguments[0] == "get":
		client := http.Client{Timeout: 5 * time.Second}
		response, err := client.Get(arguments[1])
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	case arguments[0] == "lookup":
		addresses, err := net.LookupHost(arguments[1])
		fmt.Println(strings.Join(addresses, "\n"))
		return err
	default:
		text, err := os.ReadFile(arguments[0])
		fmt.Println(string(text))
		return err
	}
}
