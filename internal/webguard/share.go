package webguard

import (
	"net/http"
	"slices"
)

// Share lets the pages of the Origins read the answers of a handler, as CORS demands. It answers
// their preflights itself: such a request only asks whether another one may be sent. An answer that
// names an origin by itself stays as it is.
func (g Guard) Share(next http.Handler) http.Handler {
	if len(g.Origins) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := r.Header.Get("Origin")
		if !slices.Contains(g.Origins, origin) {
			next.ServeHTTP(w, r)
			return
		}
		method := r.Header.Get("Access-Control-Request-Method")
		if r.Method != http.MethodOptions || method == "" {
			next.ServeHTTP(&sharedAnswer{ResponseWriter: w, origin: origin}, r)
			return
		}
		share(w.Header(), origin)
		w.Header().Set("Access-Control-Allow-Methods", method)
		if names := r.Header.Values("Access-Control-Request-Headers"); len(names) > 0 {
			w.Header()["Access-Control-Allow-Headers"] = names
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// share lets the pages of an origin read an answer with these headers, and the headers too.
func share(h http.Header, origin string) {
	h.Set("Access-Control-Allow-Origin", origin)
	if h.Get("Access-Control-Expose-Headers") == "" {
		h.Set("Access-Control-Expose-Headers", "*")
	}
	h.Add("Vary", "Origin")
}

// sharedAnswer adds the headers once it is known what the handler says.
type sharedAnswer struct {
	http.ResponseWriter
	origin string
	begun  bool
}

// WriteHeader is that of the interface. Interim answers do not count.
func (a *sharedAnswer) WriteHeader(status int) {
	if status >= http.StatusOK && !a.begun {
		a.begun = true
		if h := a.Header(); h.Get("Access-Control-Allow-Origin") == "" {
			share(h, a.origin)
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write is that of the interface.
func (a *sharedAnswer) Write(p []byte) (int, error) {
	if !a.begun {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *sharedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
