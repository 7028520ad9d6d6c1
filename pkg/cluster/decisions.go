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
	mux.HandleFunc("GET /debug/decisions/{namespace}/{function}", s.decisions)
	return mux
}

func (s *schedulerRole) decisions(w http.ResponseWriter, r *http.Request) {
	// There is a scheduler once the state says something else.
	if s.state.get() == starting {
		http.Error(w, "the scheduler is starting; try again in a second", http.StatusServiceUnavailable)
		return
	}
	key := invoke.FunctionKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("function")}
	account, known := s.scheduler.Account(key)
	if !known {
		http.Error(w, fmt.Sprintf("there is no function %s in the namespaces that Windlass watches", key), http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(account)
}
