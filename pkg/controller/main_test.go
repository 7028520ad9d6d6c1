//go:build apiserver

package controller

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/windlass-dev/windlass/internal/apitest"
)

var environment struct {
	once sync.Once
	env  *envtest.Environment
	rest *rest.Config
	err  error
}

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	code := m.Run()
	if environment.env != nil {
		if err := environment.env.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "cannot stop the API server:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// apiServer is a kube-apiserver with etcd and the CRDs, shared by all tests.
func apiServer(t *testing.T) *rest.Config {
	t.Helper()
	apitest.Programs(t, "etcd", "kube-apiserver")
	environment.once.Do(func() {
		environment.env = apitest.Environment(t, true)
		environment.rest, environment.err = environment.env.Start()
	})
	if environment.err != nil {
		t.Fatal(environment.err)
	}
	// No test waits for another's requests.
	config := rest.CopyConfig(environment.rest)
	config.QPS = -1
	return config
}

// newClient is a client without a cache.
func newClient(t *testing.T) client.Client {
	t.Helper()
	config := apiServer(t)
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newNamespace is the name of a namespace of the test's own.
func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// makeRuntime creates a Runtime that goes with the test.
func makeRuntime(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
			t.Error(err)
		}
	})
}
