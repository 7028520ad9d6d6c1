// Command function is the function that the fault lab calls. It writes every
// execution to a run log before and after, and answers with what it was sent.
//
// The query says how it behaves: ms is how long it takes, and do is what it does
// instead of answering well.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	runLog, err := os.OpenFile(os.Getenv("LAB_LEDGER"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "function:", err)
		os.Exit(1)
	}
	switch os.Getenv("LAB_START") {
	case "crash":
		os.Exit(3)
	case "silent":
		time.Sleep(time.Hour)
	default:
		// A duration is how long the start takes.
		if slowly, err := time.ParseDuration(os.Getenv("LAB_START")); err == nil {
			time.Sleep(slowly)
		}
	}
	if api := os.Getenv("AWS_LAMBDA_RUNTIME_API"); api != "" {
		fmt.Fprintln(os.Stderr, "function:", lambda("http://"+api))
		os.Exit(1)
	}
	f := function{runLog: runLog, cid: os.Getenv("WINDLASS_INSTANCE")}
	if err := http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), f); err != nil {
		fmt.Fprintln(os.Stderr, "function:", err)
		os.Exit(1)
	}
}

type function struct {
	runLog *os.File
	cid    string
}

// ServeHTTP runs one call.
func (f function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	nonce, query := r.Header.Get("Lab-Nonce"), r.URL.Query()
	f.note("began", r, nonce)
	if query.Get("do") == "ignore-body" {
		time.Sleep(milliseconds(query.Get("ms")))
	}
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	select {
	case <-time.After(milliseconds(query.Get("ms"))):
	case <-r.Context().Done():
		f.note("cancelled", r, nonce)
		panic(http.ErrAbortHandler)
	}
	answer := fmt.Sprintf("%s %d %s\n", nonce, n, hex.EncodeToString(sum.Sum(nil)))
	if query.Get("do") != "" && misbehave(w, query.Get("do"), answer) {
		return
	}
	// The line comes before the answer: once a caller has it, it is there.
	f.note("ended", r, nonce)
	_, _ = io.WriteString(w, answer)
	if size, err := strconv.Atoi(query.Get("out")); err == nil {
		_, _ = io.WriteString(w, strings.Repeat("x", size))
	}
}

// note writes one line with one write, which the kernel does not mix with others.
func (f function) note(what string, r *http.Request, nonce string) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	id := r.Header.Get("Windlass-Invocation-Id")
	line := fmt.Sprintf("%s %s %s %s %d\n", what, or(nonce), or(id), or(f.cid), now.Nano())
	if _, err := f.runLog.WriteString(line); err != nil {
		fmt.Fprintln(os.Stderr, "function: the run log cannot be written:", err)
		os.Exit(4)
	}
}

func or(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func milliseconds(text string) time.Duration {
	n, _ := strconv.Atoi(text)
	return time.Duration(n) * time.Millisecond
}

// misbehave does what is asked for instead of answering, and says whether that
// was all.
func misbehave(w http.ResponseWriter, what, answer string) bool {
	switch what {
	case "exit":
		os.Exit(5)
	case "segfault":
		_ = unix.Kill(unix.Getpid(), unix.SIGSEGV)
		select {}
	case "hang":
		select {}
	case "break":
		panic(http.ErrAbortHandler)
	case "truncate":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "not all of it")
		panic(http.ErrAbortHandler)
	case "endless":
		for {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return true
			}
			time.Sleep(10 * time.Millisecond)
		}
	case "error":
		http.Error(w, "the function says no", http.StatusInternalServerError)
	case "twice":
		raw(w, fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%sHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nagain", len(answer), answer))
	case "garbage", "two-lengths", "bad-chunk", "storm":
		raw(w, answers[what])
	default:
		return false
	}
	return true
}

// answers that are not HTTP, or not quite.
var answers = map[string]string{
	"garbage":     "\x00\x01\x02 this is no answer\r\n\r\n",
	"two-lengths": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
	"bad-chunk":   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
	"storm":       strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 10_000),
}

// raw writes an answer to the connection itself and closes it.
func raw(w http.ResponseWriter, answer string) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	connection, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer func(c net.Conn) { _ = c.Close() }(connection)
	_, _ = io.WriteString(connection, answer)
}
