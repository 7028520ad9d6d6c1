package serve

import (
	"net/http"
	"net/http/pprof"
)

// Profiles adds the profiles of this process to a handler, below /debug/pprof/. They show what
// the program does, and a profile takes CPU time while it runs, so an operator asks for them.
func Profiles(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
