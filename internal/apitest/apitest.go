package apitest

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Release is that of the programs which test/cluster/binaries.sh builds.
const Release = "v1.34.4"

// Programs is the folder with the programs of a cluster. The test fails
// unless those that it names are there.
func Programs(t testing.TB, names ...string) string {
	t.Helper()
	folder := os.Getenv("WINDLASS_KUBERNETES_BIN")
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(cache, "windlass", "kubernetes-"+Release)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Fatalf("%v: run make cluster-binaries", err)
		}
	}
	return folder
}

// Ports are n different ports of this machine at which nobody listens.
func Ports(t testing.TB, n int) []string {
	t.Helper()
	ports := make([]string, n)
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() // not sooner, so that no port comes twice
		if _, ports[i], err = net.SplitHostPort(listener.Addr().String()); err != nil {
			t.Fatal(err)
		}
	}
	return ports
}

// Environment is an API that is not started yet, with the CRDs of Windlass or
// without.
func Environment(t testing.TB, crds bool) *envtest.Environment {
	t.Helper()
	env := &envtest.Environment{
		BinaryAssetsDirectory:    Programs(t, "etcd", "kube-apiserver"),
		ControlPlaneStartTimeout: time.Minute,
	}
	if crds {
		env.CRDDirectoryPaths = []string{filepath.Join(module(t), "config", "crd")}
		env.ErrorIfCRDPathMissing = true
	}
	return env
}

// module is the folder of the module that is tested. Tests run in their package's
// folder; paths that the compiler knows are not those of files under -trimpath.
func module(t testing.TB) string {
	t.Helper()
	at, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			t.Fatal("no folder above this one has a go.mod")
		}
	}
}

// Start starts an API that ends with the test. A user of its configuration is
// the administrator, and is not slowed down.
func Start(t testing.TB, crds bool) *rest.Config {
	t.Helper()
	env := Environment(t, crds)
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Errorf("the API server does not stop: %v", err)
		}
	})
	config.QPS = -1
	return config
}
