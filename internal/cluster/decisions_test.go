package cluster

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// alone owns every slot.
type alone struct{ ownership.Static }

func (alone) Epoch(ownership.Slot) (uint64, bool) { return 1, true }
func (alone) Unconfirmed() (time.Time, bool)      { return time.Time{}, false }

func TestASchedulerTellsWhatItDecidedOnThePortForOperations(t *testing.T) {
	s := &schedulerRole{registry: exposition.NewRegistry()}
	s.state.Set(role.Starting)
	handler := s.operations()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if w := get("/debug/decisions/team/web"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "is starting") {
		t.Errorf("a scheduler that starts answers %d %s", w.Code, w.Body)
	}

	if w := get("/debug/decisions"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("asked for all decisions, it answers %d %s", w.Code, w.Body)
	}

	functions := catalog.New()
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID = "team", "web", "uid-web"
	functions.Put(rollout.Alone(fn))
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	var err error
	s.scheduler, err = scheduler.New(scheduler.DefaultConfig(), scheduler.Deps{
		Catalog: functions, Ownership: alone{}, Registry: s.registry, Log: log, Now: time.Now,
		Instances: provisioner.New(provisioner.Config{}, provisioner.Deps{Now: time.Now, Log: log}),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.state.Set("")
	w := get("/debug/decisions/team/web")
	var account decisionlog.Report
	if err := json.Unmarshal(w.Body.Bytes(), &account); err != nil || w.Code != http.StatusOK || account.Name != "web" {
		t.Errorf("it answers %d %s", w.Code, w.Body)
	}
	if w := get("/debug/decisions/team/other"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "there is no function team/other") {
		t.Errorf("of an unknown function it answers %d %s", w.Code, w.Body)
	}
	w = get("/debug/decisions")
	var latest decisionlog.LatestReport
	if err := json.Unmarshal(w.Body.Bytes(), &latest); err != nil || w.Code != http.StatusOK || latest.Functions == nil {
		t.Errorf("asked for all decisions, it answers %d %s", w.Code, w.Body)
	}
	if w := get("/healthz"); w.Code != http.StatusOK {
		t.Errorf("health is answered with %d", w.Code)
	}
	if w := get("/metrics"); !strings.Contains(w.Body.String(), "windlass_scheduler") {
		t.Error("there are no metrics")
	}
}
