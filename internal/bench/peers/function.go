package peers

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
)

// AnswerParameter is the query parameter that says how many bytes the function answers with.
const AnswerParameter = "answer"

// HoldParameter is the query parameter that says for how many microseconds the function holds a
// call before it answers. The answer then says how many calls it has run at a time.
const HoldParameter = "hold"

// runFunction is the function. With a port it is an instance of Windlass: it listens there, and
// Windlass ends it.
func runFunction(ctx context.Context, in io.Reader, out io.Writer, port string) error {
	server := plainServer(new(function))
	if port != "" {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			return err
		}
		return server.Serve(l)
	}
	l, err := Listen()
	if err != nil {
		return err
	}
	if err := (Ready{URL: URLOf(l)}).Print(out); err != nil {
		return err
	}
	return serveUntil(UntilEnd(ctx, in), l, server)
}

var zeros [64 << 10]byte

// function reads the request to its end, and answers with as many bytes as it is asked for.
type function struct{ running, mostRunning atomic.Int64 }

func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	query := r.URL.Query()
	if hold := query.Get(HoldParameter); hold != "" {
		f.hold(w, hold)
	}
	left, err := strconv.ParseInt(query.Get(AnswerParameter), 10, 64)
	if err != nil || left < 0 {
		http.Error(w, AnswerParameter+" is no number of bytes", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Length", strconv.FormatInt(left, 10))
	for left > 0 {
		n, err := w.Write(zeros[:min(left, int64(len(zeros)))])
		if err != nil {
			return
		}
		left -= int64(n)
	}
}

// hold holds a call, and counts those that it holds. A call whose client has left counts until it
// has been held: the limit is on what runs, not on who waits for it.
func (f *function) hold(w http.ResponseWriter, text string) {
	micros, err := strconv.Atoi(text)
	if err != nil {
		return // the answer has no count, and the load says so
	}
	running := f.running.Add(1)
	defer f.running.Add(-1)
	for most := f.mostRunning.Load(); running > most && !f.mostRunning.CompareAndSwap(most, running); most = f.mostRunning.Load() {
	}
	time.Sleep(time.Duration(micros) * time.Microsecond)
	w.Header().Set(loadgen.RunningHeader, strconv.FormatInt(f.mostRunning.Load(), 10))
}
