// Search finds the lines of a text that contain a word, and streams them as
// newline-delimited JSON. The text is the Apache License 2.0.
//
//	/?q=patent
//
// It is a plain HTTP server that knows of its surroundings only $PORT.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

//go:embed licence.txt
var text string

// match is one line of an answer.
type match struct {
	// Line counts from 1.
	Line int    `json:"line"`
	Text string `json:"text"`
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

// run serves until the process is told to stop.
func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	server := &http.Server{Addr: net.JoinHostPort("127.0.0.1", os.Getenv("PORT")), Handler: searcher(text)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		_ = server.Shutdown(context.Background()) // waits for the calls that run
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	<-done
	return nil
}

// searcher answers searches in a text, without regard to case.
func searcher(text string) http.Handler {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	lower := make([]string, len(lines))
	for i, line := range lines {
		lower[i] = strings.ToLower(line)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		word := strings.ToLower(r.FormValue("q"))
		if word == "" {
			http.Error(w, "q is missing: give what to search for, as in /?q=patent", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		out := json.NewEncoder(w)
		stream := http.NewResponseController(w)
		for i, line := range lower {
			if !strings.Contains(line, word) {
				continue
			}
			if out.Encode(match{Line: i + 1, Text: strings.TrimSpace(lines[i])}) != nil || stream.Flush() != nil {
				return // nobody reads any more
			}
		}
	})
}
