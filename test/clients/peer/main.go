// Command peer is the function that clients call: it speaks HTTP/1.1, h2c, WebSocket and gRPC,
// and says what it saw of each call.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/reflection"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func serve() error {
	runLog, err := os.OpenFile(os.Getenv("LAB_LEDGER"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	calls := grpc.NewServer()
	grpc_testing.RegisterTestServiceServer(calls, service{})
	reflection.Register(calls)
	web := paths(&conversations{waiting: make(map[string]chan struct{})})
	server := http.Server{Addr: "127.0.0.1:" + os.Getenv("PORT"), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		if nonce := r.Header.Get("Lab-Nonce"); nonce != "" {
			fmt.Fprintln(runLog, "began", nonce)
		}
		web.ServeHTTP(w, r)
	})
	return server.ListenAndServe()
}
