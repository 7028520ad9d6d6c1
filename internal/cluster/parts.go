package cluster

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.opentelemetry.io/otel"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/client/config"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/lifecycle"
)

// newLog makes the logger of a role, also for the libraries that only the control plane has.
func newLog(c role.Common, registerer prometheus.Registerer) (log *slog.Logger, flush func()) {
	log, flush = role.NewLog(c, registerer)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("a library says", "library", "opentelemetry", "err", err) }))
	ctrl.SetLogger(logr.FromSlogHandler(log.With("library", "controller-runtime").Handler()))
	return log, flush
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	// Neither can fail: they add types that are fixed.
	_ = clientgoscheme.AddToScheme(scheme)
	_ = v1alpha1.AddToScheme(scheme)
	return scheme
}

// restConfig is that of the pod or else of the kubeconfig.
func restConfig() (*rest.Config, error) {
	config, err := ctrlconfig.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("no way to the API server: %w: run in a pod with a service account, or set KUBECONFIG", err)
	}
	config.UserAgent = "windlass"
	// What is sent is bounded where it is decided.
	config.QPS = -1
	return config, nil
}

// newInformers makes the informers of Functions, their revisions and Runtimes.
func newInformers(config *rest.Config, namespaces []string, transform toolscache.TransformFunc) (cache.Cache, error) {
	options := cache.Options{Scheme: newScheme(), DefaultTransform: transform}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = make(map[string]cache.Config, len(namespaces))
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return cache.New(config, options)
}

// newEtcd makes a client, which connects when it is used.
func newEtcd(c Etcd, log *slog.Logger) (*clientv3.Client, error) {
	config := clientv3.Config{
		Endpoints:   c.Endpoints,
		DialTimeout: 5 * time.Second, DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		PermitWithoutStream: true, RejectOldCluster: false, Logger: zap.NewNop(),
		// After an outage all members must return at about the same time: others wait for the
		// holders of slots, but not for minutes.
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		})},
	}
	if c.TLSDir != "" {
		info := transport.TLSInfo{
			CertFile: filepath.Join(c.TLSDir, "tls.crt"), KeyFile: filepath.Join(c.TLSDir, "tls.key"),
			TrustedCAFile: filepath.Join(c.TLSDir, "ca.crt"),
		}
		tls, err := info.ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("--etcd-tls-dir %s: %w", c.TLSDir, err)
		}
		config.TLS = tls
		config.DialOptions = append(config.DialOptions, grpc.WithTransportCredentials(etcdCredentials{credentials.NewTLS(tls), info}))
	}
	newClient := clientv3.New
	if c.Username != "" && c.PasswordFile != "" {
		newClient = c.newClientOfUser
	}
	client, err := newClient(config)
	if err != nil {
		return nil, fmt.Errorf("--etcd-endpoints %s: %w", strings.Join(c.Endpoints, ","), err)
	}
	log.Info("using etcd", "endpoints", c.Endpoints, "tls", c.TLSDir != "")
	return client, nil
}

// newClientOfUser makes a client that authenticates when etcd refuses its token. clientv3.New would
// authenticate a user at once, and fail while etcd is away; it takes a token of its config
// unseen.
func (c Etcd) newClientOfUser(config clientv3.Config) (*clientv3.Client, error) {
	password, err := passwordFile(c.PasswordFile).read()
	if err != nil {
		return nil, err
	}
	config.Token = "none"
	client, err := clientv3.New(config)
	if err != nil {
		return nil, err
	}
	client.Token, client.Username, client.Password = "", c.Username, password
	client.Auth = userAuth{client.Auth, passwordFile(c.PasswordFile)}
	return client, nil
}

// userAuth authenticates with the password that is in the file then, not with the client's, which
// is of the start.
type userAuth struct {
	clientv3.Auth
	password passwordFile
}

func (a userAuth) Authenticate(ctx context.Context, name, _ string) (*clientv3.AuthenticateResponse, error) {
	password, err := a.password.read()
	if err != nil {
		return nil, err
	}
	return a.Auth.Authenticate(ctx, name, password)
}

type passwordFile string

func (f passwordFile) read() (string, error) {
	content, err := os.ReadFile(string(f))
	if err != nil {
		return "", fmt.Errorf("--etcd-password-file: %w", err)
	}
	password := strings.TrimSpace(string(content))
	if password == "" {
		return "", fmt.Errorf("--etcd-password-file %s is empty: write the password into it", string(f))
	}
	return password, nil
}

// etcdCredentials makes each handshake with the CA that is in the files then; the client's own
// would keep the first. The certificate need not be of that CA, as it need be for mtls.Load: an etcd
// of somebody else may trust clients of another one.
type etcdCredentials struct {
	credentials.TransportCredentials
	files transport.TLSInfo
}

func (c etcdCredentials) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := c.files.ClientConfig()
	if err != nil {
		return nil, nil, err
	}
	return credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
}

func (c etcdCredentials) Clone() credentials.TransportCredentials { return c }

// waitAll waits for all of them, or for a failure or the end.
func waitAll(ctx context.Context, parts *lifecycle.Lifecycle, all ...<-chan struct{}) error {
	for _, ready := range all {
		select {
		case <-ready:
		case err := <-parts.Failed():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// poll is closed when something has become true.
func poll(ctx context.Context, isTrue func() bool) <-chan struct{} {
	became := make(chan struct{})
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for !isTrue() {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
		close(became)
	}()
	return became
}
