package workers

import (
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/spf13/cobra"
)

// AnswerParameter is the query parameter that says how many bytes the function answers with.
const AnswerParameter = "answer"

func functionCommand() *cobra.Command {
	return workerCommand(FunctionCommand, "Be the function that windlass bench calls", func(cmd *cobra.Command) error {
		server := plainServer(http.HandlerFunc(function))
		// As an instance of Windlass it listens where it is told, and ends with its instance.
		if port := os.Getenv("PORT"); port != "" {
			l, err := net.Listen("tcp", "127.0.0.1:"+port)
			if err != nil {
				return err
			}
			return server.Serve(l)
		}
		l, err := listenLoopback()
		if err != nil {
			return err
		}
		ctx := untilInputEnds(cmd)
		if err := printReady(cmd, Ready{URL: urlOf(l)}); err != nil {
			return err
		}
		return serveUntil(ctx, l, server)
	})
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
