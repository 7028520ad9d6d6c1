package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// Decider returns recent decisions.
type Decider interface {
	Latest() decisionlog.LatestReport
	Report(invocation.FunctionKey) (decisionlog.Report, bool)
}

func (s *schedulerRole) operations() http.Handler {
	return SchedulerOperations(s.registry, s.state.Get, func() Decider { return s.scheduler })
}

// SchedulerOperations serves the health checks, the metrics and, once decider returns one, the
// recent decisions of a scheduler. They reveal no more to strangers than metrics do: names of
// functions and numbers.
func SchedulerOperations(metrics exposition.Source, unready func() string, decider func() Decider) http.Handler {
	d := decisions{unready, decider}
	mux := http.NewServeMux()
	mux.Handle("/", serve.Operations(metrics, unready))
	mux.Handle("GET /debug/decisions", serve.FewAtATime(http.HandlerFunc(d.latest)))
	mux.Handle("GET /debug/decisions/{namespace}/{function}", serve.FewAtATime(http.HandlerFunc(d.report)))
	return mux
}

type decisions struct {
	unready func() string
	decider func() Decider
}

// started says whether there is a scheduler to ask, and answers if there is none yet.
func (d decisions) started(w http.ResponseWriter) bool {
	// There is one once the state says something else.
	if d.unready() == role.Starting {
		http.Error(w, "the scheduler is starting; try again in a second", http.StatusServiceUnavailable)
		return false
	}
	return true
}

func (d decisions) latest(w http.ResponseWriter, _ *http.Request) {
	if d.started(w) {
		writeJSON(w, d.decider().Latest())
	}
}

func (d decisions) report(w http.ResponseWriter, r *http.Request) {
	if !d.started(w) {
		return
	}
	key := invocation.FunctionKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("function")}
	account, known := d.decider().Report(key)
	if !known {
		http.Error(w, fmt.Sprintf("there is no function %s in the namespaces that Windlass watches", key), http.StatusNotFound)
		return
	}
	writeJSON(w, account.Public())
}

func writeJSON(w http.ResponseWriter, what any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(what)
}
