package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/windlass-dev/windlass/internal/mtls/testca"
	"github.com/windlass-dev/windlass/pkg/controller"
)

// nobody is an address where nothing listens.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAControllerThatStartsWithoutTheAPIServerIsAliveAndNotReady(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}], " +
		"users: [{name: u}], clusters: [{name: c, cluster: {server: 'http://" + nobody(t) + "'}}]}"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	config := goodController()
	config.TLSDir, config.OpsListen = testca.New(t).Folder(t, "controller"), nobody(t)
	config.Egress.Mode = controller.EgressOpen
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Controller(ctx, config) }()
	ask := func(path string) (int, string) {
		response, err := http.Get("http://" + config.OpsListen + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		body, _ := io.ReadAll(response.Body)
		return response.StatusCode, strings.TrimSpace(string(body))
	}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		code, _ := ask("/healthz")
		return code == http.StatusOK || len(ended) > 0, nil
	})
	if err != nil {
		t.Error(err)
	}
	if code, why := ask("/readyz"); code != http.StatusServiceUnavailable || why != "starting" {
		t.Errorf("/readyz answers %d %q", code, why)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the end of the context is the error %v", err)
	}
}

// answers is an API server that answers with one status after the other, the last one for ever. Zero is no answer.
type answers []int

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	status := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

func TestTheAPIServerIsAwaitedUntilItAnswers(t *testing.T) {
	for name, a := range map[string]answers{
		"away":             {0, 0, 200},
		"starting":         {503, 500, 200},
		"without Windlass": {0, 503, 404},
		"without rights":   {0, 503, 403},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				if err := awaitAPIServer(t.Context(), &rest.Config{Host: "http://api", Transport: &a}, slog.New(slog.DiscardHandler)); err != nil {
					t.Fatal(err)
				}
				if waited := time.Since(began); waited != 2*apiServerRetry || len(a) != 1 {
					t.Errorf("it waited for %v", waited)
				}
			})
		})
	}
}

func TestAwaitingTheAPIServerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := awaitAPIServer(ctx, &rest.Config{Host: "http://api", Transport: &answers{0}}, slog.New(slog.DiscardHandler))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
	})
}
