package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// operations are the health checks and metrics of a scheduler, and what it has
// decided lately. They tell no more to strangers than metrics do: names of
// functions and numbers.
func (s *schedulerRole) operations() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", serve.Operations(s.registry, s.state.get))
	mux.HandleFunc("GET /debug/decisions", s.latest)
	mux.HandleFunc("GET /debug/decisions/{namespace}/{function}", s.decisions)
	return mux
}

// started says whether there is a scheduler to ask, and answers if there is none yet.
func (s *schedulerRole) started(w http.ResponseWriter) bool {
	// There is one once the state says something else.
	if s.state.get() == starting {
		http.Error(w, "the scheduler is starting; try again in a second", http.StatusServiceUnavailable)
		return false
	}
	return true
}

func (s *schedulerRole) latest(w http.ResponseWriter, _ *http.Request) {
	if s.started(w) {
		tell(w, s.scheduler.Latest())
	}
}

func (s *schedulerRole) decisions(w http.ResponseWriter, r *http.Request) {
	if !s.started(w) {
		return
	}
	key := invoke.FunctionKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("function")}
	account, known := s.scheduler.Account(key)
	if !known {
		http.Error(w, fmt.Sprintf("there is no function %s in the namespaces that Windlass watches", key), http.StatusNotFound)
		return
	}
	tell(w, account.Public())
}

func tell(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}
