// Fib computes Fibonacci numbers the slow way, which makes it a function that
// takes as long as one wants.
//
//	/?n=30    computes the 30th number, with 2.7 million calls of itself
//	/?ms=120  computes small numbers over and over for 120 ms
//
// It is a plain HTTP server that knows of its surroundings only $PORT.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const (
	// maxN takes some 20 s.
	maxN = 48
	// maxMs is an hour.
	maxMs = 3_600_000
	// roundN is small enough (some 30 µs) to look at the clock in between.
	roundN = 20
)

// answer says what was computed.
type answer struct {
	N      int     `json:"n"`
	Result int     `json:"result"`
	Rounds int     `json:"rounds"`
	Ms     float64 `json:"ms"`
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
	server := &http.Server{Addr: net.JoinHostPort("127.0.0.1", os.Getenv("PORT")), Handler: http.HandlerFunc(serve)}
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

func serve(w http.ResponseWriter, r *http.Request) {
	a, err := compute(r.Context(), r.FormValue("n"), r.FormValue("ms"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(a)
}

// compute takes exactly one of a number and a time in milliseconds.
func compute(ctx context.Context, n, ms string) (answer, error) {
	began := time.Now()
	a := answer{N: roundN, Rounds: 1}
	switch {
	case n != "" && ms == "":
		number, err := strconv.Atoi(n)
		if err != nil || number < 0 || number > maxN {
			return a, fmt.Errorf("n is %q: give a whole number from 0 to %d", n, maxN)
		}
		a.N, a.Result = number, fib(number)
	case ms != "" && n == "":
		want, err := strconv.ParseFloat(ms, 64)
		if err != nil || math.IsNaN(want) || want < 0 || want > maxMs {
			return a, fmt.Errorf("ms is %q: give a number of milliseconds from 0 to %d", ms, maxMs)
		}
		until := began.Add(time.Duration(want * float64(time.Millisecond)))
		a.Result = fib(roundN)
		for ; time.Now().Before(until) && ctx.Err() == nil; a.Rounds++ {
			a.Result = fib(roundN)
		}
	default:
		return a, fmt.Errorf("give either n, as in /?n=30, or ms, as in /?ms=120")
	}
	a.Ms = float64(time.Since(began)) / float64(time.Millisecond)
	return a, nil
}

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}
