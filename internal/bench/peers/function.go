package peers

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
)

// AnswerParameter is the query parameter that says how many bytes the function answers with.
const AnswerParameter = "answer"

// runFunction is the function. With a port it is an instance of Windlass: it listens there, and
// Windlass ends it.
func runFunction(ctx context.Context, in io.Reader, out io.Writer, port string) error {
	server := plainServer(http.HandlerFunc(function))
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
func function(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	left, err := strconv.ParseInt(r.URL.Query().Get(AnswerParameter), 10, 64)
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
