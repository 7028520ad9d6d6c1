package attacks

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/catalog"
	"github.com/windlass-dev/windlass/pkg/gateway"
	"github.com/windlass-dev/windlass/pkg/gateway/admission"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/rollout"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// domain is that of the certificates, and another that of a Windlass with the same CA.
const (
	domain  mtls.Domain = "windlass.attacked.windlass"
	another mtls.Domain = "windlass.evil.windlass"
)

const (
	// patience is how long a test waits for what must come.
	patience = 30 * time.Second
	// marker is in all that attacks send and may appear in no log.
	marker = "xMARKERx"
	// maxBody is the gateway's limit.
	maxBody = 256 << 10
	// maxWait is how long calls may wait for an instance.
	maxWait = 10 * time.Second
)

// The functions of the world: honest has an instance that works, and the attacker
// is the instance of evil. Instances of broken end at their start, and it exists only
// where an attack puts it.
const (
	honest = "honest"
	evil   = "evil"
	broken = "broken"
)

// platform is what is attacked.
type platform struct {
	*testing.T
	row      string // of the table of attacks
	ca       *testca.CA
	key      *ecdsa.PrivateKey
	registry *exposition.Registry
	log      *logBuffer
	catalog  *catalog.Catalog
	verifier *podtoken.Verifier
	calls    string // address of the gateway for clients

	scheduler, gateway string // addresses on the wire
	decider            *scheduler.Scheduler
	// added is how many series an attack has made that are not its own.
	added int

	mu       sync.Mutex
	pods     map[string]provisioner.Key // by UID
	executed []callwire.Call            // by the honest instance
	started  map[string]chan provisioner.Key
}

func newPlatform(t *testing.T) *platform {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	w := &platform{
		T: t, ca: testca.New(t), key: key, registry: exposition.NewRegistry(), log: &logBuffer{}, catalog: catalog.New(),
		pods: make(map[string]provisioner.Key),
		started: map[string]chan provisioner.Key{
			honest: make(chan provisioner.Key, 64), evil: make(chan provisioner.Key, 64), runtimeFunction: make(chan provisioner.Key, 64),
		},
	}
	log := slog.New(slog.NewJSONHandler(w.log, nil))
	w.verifier, err = podtoken.New(podtoken.DefaultConfig(), podtoken.Deps{Keys: w, Log: log, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.runs(w.verifier.Run)
	atScheduler, atGateway, atCalls := w.listen(), w.listen(), w.listen()
	w.scheduler, w.gateway, w.calls = atScheduler.Addr().String(), atGateway.Addr().String(), atCalls.Addr().String()
	w.startScheduler(atScheduler, log)
	w.startGateway(atGateway, atCalls, log)
	w.put(evil, time.Second, asks(2, ownHost, honestHost, gatewayHost, hostsDomain, deniedHost))
	w.put(honest, time.Minute, asks(1, ownHost))
	go w.work(w.instanceOf(honest))
	return w
}

// asks gives a function hosts to ask for, and the time of its creation in seconds.
func asks(created int64, hosts ...v1alpha1.Hostname) func(*v1alpha1.Function) {
	return func(fn *v1alpha1.Function) {
		fn.CreationTimestamp, fn.Spec.Expose.Hosts = metav1.Unix(created, 0), hosts
	}
}

// anybody may call, and functions may have any host but one.
type anybody struct{}

func (anybody) Authenticate(http.Header, invocation.FunctionKey) (auth.Caller, error) {
	return auth.Caller{}, nil
}

func (anybody) Limits(string) admission.Limits { return admission.Limits{} }

func (anybody) Permits(_, host string) bool { return host != deniedHost }

// put registers a function with one instance.
func (w *platform) put(name string, timeout time.Duration, change ...func(*v1alpha1.Function)) {
	fn := &v1alpha1.Function{}
	fn.Namespace, fn.Name, fn.UID, fn.Generation = "shop", name, types.UID("uid-of-"+name), 1
	v1alpha1.Default(fn)
	fn.Spec.Template.Timeout.Duration = timeout
	fn.Spec.Scaling.MinInstances = 1
	most := int32(1)
	fn.Spec.Scaling.MaxInstances = &most
	for _, c := range change {
		c(fn)
	}
	w.catalog.Put(rollout.Alone(fn))
}

func (w *platform) startScheduler(l net.Listener, log *slog.Logger) {
	certificate := w.role(domain.Scheduler())
	instances := provisioner.New(
		provisioner.Config{Nodes: []placement.Node{{Name: nodeName, Allocatable: placement.Amount{MilliCPU: 1 << 30, Memory: 1 << 50}}}},
		provisioner.Deps{Driver: &runtime{world: w, exits: make(chan provisioner.Exit)}, Verify: w.verify, Now: time.Now, Log: log},
	)
	owner := ownership.NewStatic(ownership.Owner{ID: "one", Addr: w.scheduler})
	config := scheduler.DefaultConfig()
	s, err := scheduler.New(config, scheduler.Deps{
		Catalog: w.catalog, Ownership: owner, Instances: instances, Registry: w.registry, Log: log, Now: time.Now,
	})
	if err != nil {
		w.Fatal(err)
	}
	w.decider = s
	server := serve.NewWire(prometheus.WrapRegistererWith(prometheus.Labels{"at": "scheduler"}, w.registry),
		certificate.ServerCredentials(), mtls.RequirePeer(mtls.SchedulerMethods(domain))...)
	agentwire.RegisterInstancesServer(server, s)
	controlwire.RegisterSchedulerServer(server, s)
	w.runs(func(ctx context.Context) error { return instances.Run(ctx, s) })
	w.runs(s.Run)
	w.runs(func(ctx context.Context) error { return serve.Wire(ctx, l, server) })
}

func (w *platform) startGateway(wire, calls net.Listener, log *slog.Logger) {
	certificate := w.role(domain.Gateway())
	config := gateway.DefaultConfig()
	config.ClaimAddr, config.MaxBody, config.MaxQueueTime = w.gateway, maxBody, maxWait
	config.ProblemDetail, config.URLs = gateway.DetailNone, newURLs(w)
	g, err := gateway.New(config, gateway.Deps{
		Catalog: w.catalog, Router: ownership.NewStatic(ownership.Owner{ID: "one", Addr: w.scheduler}),
		Schedulers: certificate.ClientCredentials(domain.Scheduler()), Registry: w.registry, Log: log, Left: serve.ClientLeft, Linger: serve.Linger, Callers: anybody{},
	})
	if err != nil {
		w.Fatal(err)
	}
	agents := serve.NewAgents(prometheus.WrapRegistererWith(prometheus.Labels{"at": "gateway"}, w.registry), certificate.CallServer(), g)
	w.runs(g.Run)
	w.runs(func(ctx context.Context) error { return serve.Agents(ctx, wire, agents) })
	w.runs(func(ctx context.Context) error { return serve.Calls(ctx, calls, g, time.Second, w.registry, log) })
}

// runs runs a part until the test ends.
func (w *platform) runs(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := receive(w.T, ended, "the end of a part"); err != nil {
			w.Error(err)
		}
	})
}

func (w *platform) listen() net.Listener {
	w.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}
	return l
}

func (w *platform) role(name string) *mtls.Credentials {
	w.Helper()
	c, err := mtls.Load(w.ca.Folder(w, name), slog.New(slog.DiscardHandler))
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// Keys implements podidentity.KeySource.
func (w *platform) Keys(context.Context) ([]byte, error) {
	return json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{KeyID: "k", Key: w.key.Public(), Algorithm: "ES256", Use: "sig"}}})
}

// verify does what a scheduler in a cluster does: the token must be of the pod that
// is the instance.
func (w *platform) verify(key provisioner.Key, token string) error {
	identity, err := w.verifier.Verify(token)
	if err != nil {
		return fmt.Errorf("%w: %w", provisioner.ErrBadToken, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if known, ok := w.pods[identity.PodUID]; !ok || known != key {
		return fmt.Errorf("%w: of another pod", provisioner.ErrBadToken)
	}
	return nil
}

// podOf is the UID of an instance's pod.
func podOf(key provisioner.Key) string { return "pod-" + key.FunctionUID + "-" + string(key.CID) }

// token is what the kubelet would mount into a pod, but for changes.
func (w *platform) token(pod string, changes map[string]any) string {
	return w.signed(w.key, pod, changes)
}

func (w *platform) signed(key *ecdsa.PrivateKey, pod string, changes map[string]any) string {
	w.Helper()
	now := time.Now()
	said := map[string]any{
		"aud": []string{podtoken.Audience}, "iss": "https://kubernetes.default.svc", "sub": "system:serviceaccount:shop:default",
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "jti": rand.Text() + marker,
		"kubernetes.io": map[string]any{
			"namespace": "shop", "pod": map[string]any{"name": "p", "uid": pod}, "serviceaccount": map[string]any{"name": "default", "uid": "s"},
		},
	}
	for claim, value := range changes {
		said[claim] = value
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", "k"))
	if err != nil {
		w.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(said).Serialize()
	if err != nil {
		w.Fatal(err)
	}
	return token
}

// instanceOf is the instance of a function that was started last. It can be asked
// for once.
func (w *platform) instanceOf(function string) provisioner.Key {
	w.Helper()
	return receive(w.T, w.started[function], "an instance of "+function)
}

// runtime starts nothing: a test can play the instance.
type runtime struct {
	world *platform
	exits chan provisioner.Exit
}

func (r *runtime) Start(spec provisioner.InstanceSpec) {
	key := provisioner.Key{FunctionUID: string(spec.Function.UID), CID: spec.CID}
	if exit, ends := endings[spec.Function.Name]; ends {
		exit.FunctionUID, exit.CID = key.FunctionUID, key.CID
		go func() { r.exits <- exit }()
		return
	}
	r.world.mu.Lock()
	r.world.pods[podOf(key)] = key
	r.world.mu.Unlock()
	if started := r.world.started[spec.Function.Name]; started != nil {
		started <- key
	}
}

// endings are how instances of functions end that never start.
var endings = map[string]provisioner.Exit{
	broken:  {Reason: "it ended", LogTail: slices.Repeat([]string{strings.Repeat("x", 1000)}, 20)},
	leaking: {Reason: "the function exited with status 3", LogTail: []string{"connecting to " + secretURL}},
	pulling: {Reason: "the image " + secretImage + " cannot be pulled on node " + nodeName},
}

func (r *runtime) Stop(string, invocation.CID, bool) {}
func (r *runtime) Exits() <-chan provisioner.Exit    { return r.exits }

// as connects to the wire with credentials.
func (w *platform) as(c credentials.TransportCredentials, addr string) *grpc.ClientConn {
	w.Helper()
	conn := w.connect(c, addr)
	w.Cleanup(func() { _ = conn.Close() })
	return conn
}

// connect is as for the side that closes the connection.
func (w *platform) connect(c credentials.TransportCredentials, addr string) *grpc.ClientConn {
	w.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(c))
	if err != nil {
		w.Fatal(err)
	}
	return conn
}

// asAgent connects to the scheduler as agents do.
func (w *platform) asAgent() *grpc.ClientConn {
	w.Helper()
	return w.as(w.agent(domain.Scheduler()), w.scheduler)
}

// agent are the credentials of agents, which have no certificate, for a server with a name.
func (w *platform) agent(name string) credentials.TransportCredentials {
	w.Helper()
	c, err := mtls.AgentCredentials(w.ca.PEM(), name)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

// overTLS is a connection to the scheduler without gRPC.
func (w *platform) overTLS() net.Conn {
	w.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca.PEM())
	conn, err := tls.Dial("tcp", w.scheduler, &tls.Config{RootCAs: roots, ServerName: domain.Scheduler(), NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// receive returns what comes from a channel.
func receive[V any](t *testing.T, from <-chan V, what string) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("waited, and there was not %s", what)
		panic("unreachable")
	}
}

// until waits for a condition.
func (w *platform) until(what string, holds func() bool) {
	w.Helper()
	w.untilWithin(patience, what, holds)
}

func (w *platform) untilWithin(d time.Duration, what string, holds func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	if sleep.Until(ctx, time.Millisecond, func() (bool, error) { return holds(), nil }) != nil {
		w.Fatalf("waited, but it did not come so far that %s", what)
	}
}

// counter is the sum of the series of a metric, written as name or
// name{label=value}, and series the number of all.
func (w *platform) counter(metric string) (sum float64) {
	name, label, _ := strings.Cut(strings.TrimSuffix(metric, "}"), "{")
	w.each(func(family string, labels map[string]string, value float64) {
		key, want, filtered := strings.Cut(label, "=")
		if family == name && (!filtered || labels[key] == want) {
			sum += value
		}
	})
	return sum
}

func (w *platform) series() (n int) {
	w.each(func(string, map[string]string, float64) { n++ })
	return n
}

func (w *platform) each(do func(family string, labels map[string]string, value float64)) {
	families, err := w.registry.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			do(family.GetName(), labels, m.GetCounter().GetValue()+m.GetGauge().GetValue())
		}
	}
}

// logBuffer is a log for many goroutines.
type logBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// honestCall calls the honest function as an honest client.
func (w *platform) honestCall() {
	w.Helper()
	client := loadgen.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	call := client.Do(context.Background(), loadgen.Request{Method: http.MethodGet, URL: "http://" + w.calls + "/function/honest.shop/"})
	if call.Err != nil || call.Status != http.StatusOK {
		w.Errorf("an honest call was answered with %d, %v", call.Status, call.Err)
	}
}
