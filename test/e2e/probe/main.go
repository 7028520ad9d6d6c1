// Command probe is a function for tests. It keeps a run log, a file to which it
// appends a line when a call begins and when it ends, and misbehaves as it is
// asked to.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

func main() {
	switch os.Getenv("PROBE_START") {
	case "exit":
		fmt.Fprintln(os.Stdout, "probe: cannot find my configuration")
		os.Exit(3)
	case "never-listen":
		fmt.Fprintln(os.Stdout, "probe: thinking about it")
		// Built without cgo, a program that blocks for ever is ended as deadlocked.
		time.Sleep(time.Hour)
	case "garbage":
		garbage()
	}
	http.HandleFunc("/work", work)
	http.HandleFunc("/echo", echo)
	http.HandleFunc("/pid", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, os.Getpid()) })
	http.HandleFunc("/exit", func(http.ResponseWriter, *http.Request) { os.Exit(4) })
	http.HandleFunc("/stream", stream)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

// record appends a line to the run log; short appends are atomic.
func record(event, call string) {
	f, err := os.OpenFile(os.Getenv("PROBE_LEDGER"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	fmt.Fprintf(f, "%s %s %s %d\n", event, call, os.Getenv("WINDLASS_INSTANCE"), time.Now().UnixNano())
	_ = f.Close()
}

// work takes ?ms= milliseconds and is recorded as ?call=.
func work(w http.ResponseWriter, r *http.Request) {
	call := r.URL.Query().Get("call")
	ms, _ := strconv.Atoi(r.URL.Query().Get("ms"))
	record("begin", call)
	time.Sleep(time.Duration(ms) * time.Millisecond)
	record("end", call)
	fmt.Fprint(w, os.Getenv("WINDLASS_INSTANCE"))
}

// echo answers with what it was sent, and prints ?say=.
func echo(w http.ResponseWriter, r *http.Request) {
	for _, name := range []string{"Content-Type", "X-Custom", "Windlass-Invocation-Id", "Windlass-Caller", "Windlass-Key", "X-Forwarded-For", "Traceparent", "Tracestate"} {
		if v := r.Header.Get(name); v != "" {
			w.Header().Set("Echo-"+name, v)
		}
	}
	if say := r.URL.Query().Get("say"); say != "" {
		fmt.Fprintln(os.Stdout, say)
	}
	w.Header().Set("Echo-Method", r.Method)
	w.Header().Set("Echo-Uri", r.RequestURI)
	w.Header().Set("Windlass-Executed", "no") // must not get through
	if r.URL.Query().Has("status") {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		w.WriteHeader(status)
	}
	_, _ = io.Copy(w, r.Body)
}

// stream sends each line of the request back at once.
func stream(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex()
	w.WriteHeader(http.StatusOK)
	_ = rc.Flush()
	buffer := make([]byte, 1024)
	for {
		n, err := r.Body.Read(buffer)
		_, _ = w.Write(buffer[:n])
		_ = rc.Flush()
		if err != nil {
			return
		}
	}
}

// garbage answers every request with something that is no HTTP.
func garbage() {
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = c.Read(make([]byte, 4096))
			fmt.Fprint(c, "220 mail.example.com ESMTP\r\n")
			_ = c.Close()
		}()
	}
}
