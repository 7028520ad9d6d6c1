package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestProfilesAreServedBesideTheRest(t *testing.T) {
	handler := Profiles(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, want := range map[string]int{
		"/debug/pprof/": http.StatusOK, "/debug/pprof/heap": http.StatusOK, "/debug/pprof/cmdline": http.StatusOK,
		"/debug/pprof/nothing": http.StatusNotFound, "/metrics": http.StatusTeapot,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		if answer.Code != want {
			t.Errorf("%s: %d, want %d", path, answer.Code, want)
		}
	}
}
