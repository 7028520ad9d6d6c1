package httpadapter

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

// benchFunction is set in the process that is the function of the benchmarks.
const benchFunction = "WINDLASS_BENCH_FUNCTION"

// serveBenchFunction answers every request with as many bytes as its path says, until its
// standard input ends.
func serveBenchFunction() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintln(os.Stdout, l.Addr())
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			length, _ := strconv.Atoi(r.URL.Path[1:])
			_, _ = w.Write(bytes.Repeat([]byte("y"), length))
		}))
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startBenchFunction starts the function in a process of its own, so that its CPU is not
// counted, and returns its address.
func startBenchFunction(b *testing.B) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchFunction+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(addr)
}

// cpu is the CPU time of this process in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// discard is a ResultWriter that keeps nothing.
type discard struct{ adapter.ResultWriter }

func (discard) WriteHead(adapter.Head) error { return nil }
func (discard) Write(p []byte) (int, error)  { return len(p), nil }

// BenchmarkCall measures this side of a call whose connection is kept: "cpu-ns/call" is user
// and system time.
func BenchmarkCall(b *testing.B) {
	for _, bc := range []struct {
		name            string
		atOnce          int
		request, answer int
	}{
		{"small", 1, 0, 13},
		{"small-32", 32, 0, 13},
		{"post-1KiB", 1, 1 << 10, 13},
		{"post-64KiB", 1, 64 << 10, 13},
		{"answer-64KiB", 1, 0, 64 << 10},
	} {
		b.Run(bc.name, func(b *testing.B) {
			a := New(Config{Addr: startBenchFunction(b)})
			defer a.Close()
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			body, uri := bytes.Repeat([]byte("x"), bc.request), "/"+strconv.Itoa(bc.answer)
			invoke := func() {
				call := post(bytes.NewReader(body), int64(len(body)))
				call.RequestURI = uri
				call.Header = invocation.Fields{{Name: "Accept", Value: "*/*"}, {Name: "User-Agent", Value: "bench"}, {Name: "X-Forwarded-For", Value: "192.0.2.1"}}
				if err := a.Invoke(ctx, call, discard{}); err != nil {
					b.Error(err)
				}
			}
			invoke()
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu(b)
			var all sync.WaitGroup
			for each := range bc.atOnce {
				all.Go(func() {
					for n := each; n < b.N; n += bc.atOnce {
						invoke()
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/call")
		})
	}
}
