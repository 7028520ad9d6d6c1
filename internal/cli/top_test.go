package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/windlass-dev/windlass/internal/monitor"
)

// busyScheduler tells of two functions, one of which has a queue.
func busyScheduler(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/metrics":
		_, _ = w.Write([]byte("# TYPE windlass_scheduler_queue_length gauge\n" +
			`windlass_scheduler_queue_length{function_namespace="team",function="web"} 3` + "\n" +
			`windlass_scheduler_queue_length{function_namespace="team",function="api"} 0` + "\n" +
			`windlass_scheduler_queue_length{function_namespace="other",function="web"} 9` + "\n"))
	case "/debug/decisions":
		_, _ = w.Write([]byte(`{"functions":[{"namespace":"team","name":"web","decisions":[{"what":"launched 1","why":"Backlog: too long","reason":"Backlog","wanted":1,"launched":1}]}],"broken":[{"namespace":"team","name":"api","reason":"ImagePullFailed"}]}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestTopAsksTheSchedulersOfACluster(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(busyScheduler))
	t.Cleanup(server.Close)
	s := newClusterHarness(t, schedulerPod("scheduler-0"))
	s.streams = pipes{address: strings.TrimPrefix(server.URL, "http://")}
	out := s.run(t, "top", "--once", "--interval", "200ms").out
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "web ") || !strings.HasSuffix(lines[1], "+1 Backlog") || !strings.HasPrefix(lines[2], "api       ImagePullFailed ") {
		t.Errorf("of the context's namespace is shown:\n%s", out)
	}
	out = s.run(t, "top", "-A", "--sort", "name", "--interval", "200ms", "--filter", "WEB").out
	lines = strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[1], "other/web ") || !strings.HasPrefix(lines[2], "team/web ") {
		t.Errorf("of all namespaces is shown:\n%s", out)
	}
}

func TestA17TopForPrograms(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(busyScheduler))
	t.Cleanup(server.Close)
	s := newClusterHarness(t, schedulerPod("scheduler-0"))
	s.streams = pipes{address: strings.TrimPrefix(server.URL, "http://")}
	var v monitor.View
	if err := json.Unmarshal([]byte(s.run(t, "top", "--once", "--interval", "200ms", "-o", "json").out), &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Functions) != 2 || v.Functions[0].Queued != 3 || v.Totals.Queued != 3 || v.Totals.Broken != 1 || v.Functions[1].Broken != "ImagePullFailed" {
		t.Errorf("of the context's namespace is told: %+v", v)
	}
}

// noWay lets nobody through.
type noWay struct{}

func (noWay) DialPod(string, string) (httpstream.Connection, error) {
	return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "scheduler-0",
		errors.New(`User "u" cannot create resource "pods/portforward" in API group "" in the namespace "windlass"`))
}

func TestTopSaysWhyThereIsNothingToShow(t *testing.T) {
	s := newClusterHarness(t, schedulerPod("scheduler-0"))
	s.streams = noWay{}
	s.run(t, "top").expect(t, exitPlatform, "err", "you may not create pods/portforward in the namespace windlass", "needs the right")
	newClusterHarness(t).run(t, "top", "--windlass-namespace", "w").expect(t, exitPlatform, "err", "Windlass is not installed in the namespace w", "see docs/install.md")
	quiet(t).run(t, "top").expect(t, exitPlatform, "err", "no Windlass runs with the data folder")
	th := open(t)
	th.run(t, "top").expect(t, exitPlatform, "err", "does not tell its metrics", "see what windlass up prints")
	th.run(t, "top", "--windlass-namespace", "x").expect(t, exitUsage, "err", "--windlass-namespace is for a cluster")
}
