package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// handler answers:
//
//	/sleep?ms=N     after N milliseconds
//	/compute?ms=N   after it has used N milliseconds of processor time
//	/exit?code=N    never: the process ends with status N
//	/env?name=NAME  the value of an environment variable, 404 if it is not set;
//	                without a name all of them as a JSON list of NAME=value
//	/alloc?mb=N     after it has filled N MiB of memory, which it keeps
//	/read?path=P    what the file holds; 403 and why, if it cannot be read
//	/version        the value of $VERSION
//	anything else   host name, method, path, $GREETING and body, as JSON
func handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/sleep", sleep)
	mux.HandleFunc("/compute", compute)
	mux.HandleFunc("/exit", exit)
	mux.HandleFunc("/env", environment)
	mux.HandleFunc("/alloc", new(hoard).alloc)
	mux.HandleFunc("/read", read)
	mux.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, os.Getenv("VERSION")) })
	mux.HandleFunc("/", echo)
	return mux
}

// number reads a query parameter that must be a number of at least 0. It
// answers the request if it is none.
func number(w http.ResponseWriter, r *http.Request, name string) (int, bool) {
	n, err := strconv.Atoi(r.FormValue(name))
	if err != nil || n < 0 {
		http.Error(w, fmt.Sprintf("%s is %q; it must be a number of at least 0", name, r.FormValue(name)), http.StatusBadRequest)
		return 0, false
	}
	return n, true
}

func sleep(w http.ResponseWriter, r *http.Request) {
	ms, ok := number(w, r, "ms")
	if !ok {
		return
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		fmt.Fprintf(w, "slept %d ms\n", ms)
	case <-r.Context().Done():
		log.Printf("nobody waits any more for /sleep?ms=%d", ms)
	}
}

func compute(w http.ResponseWriter, r *http.Request) {
	ms, ok := number(w, r, "ms")
	if !ok {
		return
	}
	for until := used() + time.Duration(ms)*time.Millisecond; used() < until; {
		for n := range 10_000 {
			sink.Store(uint64(n))
		}
	}
	fmt.Fprintf(w, "computed for %d ms\n", ms)
}

// sink keeps the compiler from leaving a computation out.
var sink atomic.Uint64

// used is the processor time of this process.
func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no other reason than a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func exit(w http.ResponseWriter, r *http.Request) {
	if code, ok := number(w, r, "code"); ok {
		log.Printf("exiting with status %d", code)
		os.Exit(code)
	}
}

func environment(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("name")
	if name == "" {
		writeJSON(w, os.Environ())
		return
	}
	value, ok := os.LookupEnv(name)
	if !ok {
		http.Error(w, name+" is not set", http.StatusNotFound)
		return
	}
	fmt.Fprintln(w, value)
}

// hoard keeps memory, so that the garbage collector cannot give it back.
type hoard struct {
	mu   sync.Mutex
	kept [][]byte
}

func (h *hoard) alloc(w http.ResponseWriter, r *http.Request) {
	mb, ok := number(w, r, "mb")
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for range mb {
		piece := make([]byte, 1<<20)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1 // memory that nobody wrote to costs nothing
		}
		h.kept = append(h.kept, piece)
	}
	fmt.Fprintf(w, "keeping %d MiB\n", len(h.kept))
}

func read(w http.ResponseWriter, r *http.Request) {
	content, err := os.ReadFile(r.FormValue("path"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	_, _ = w.Write(content)
}

func echo(w http.ResponseWriter, r *http.Request) {
	host, err := os.Hostname()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // who sent half a body does not wait for an answer
	}
	writeJSON(w, map[string]string{
		"hostname": host, "method": r.Method, "path": r.URL.Path, "greeting": os.Getenv("GREETING"), "body": string(body),
	})
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Printf("the answer was not taken: %v", err)
	}
}
