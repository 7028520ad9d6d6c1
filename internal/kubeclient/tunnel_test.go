package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// forwarding is an API server that forwards ports to addresses as a node does.
type forwarding struct {
	t       *testing.T
	address string
	ports   atomic.Value
	dials   atomic.Int32
}

func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/windlass/pods/gateway-1/portforward" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		f.t.Errorf("the handshake: %v", err)
		return
	}
	problems := make(chan httpstream.Stream, 8)
	upgraded := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, replySent <-chan struct{}) error {
		go func() {
			<-replySent
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
				problems <- stream
				return
			}
			f.ports.Store(stream.Headers().Get(corev1.PortHeader))
			f.forward(stream, <-problems)
		}()
		return nil
	})
	if upgraded != nil {
		<-upgraded.CloseChan()
	}
}

func (f *forwarding) forward(data, problems httpstream.Stream) {
	defer problems.Close()
	defer data.Close()
	f.dials.Add(1)
	conn, err := net.Dial("tcp", f.address)
	if err != nil {
		fmt.Fprintf(problems, "an error occurred forwarding: %v", err)
		// Nobody reads what comes any more.
		go func() { _, _ = io.Copy(io.Discard, data) }()
		return
	}
	defer conn.Close()
	go func() { _, _ = io.Copy(conn, data) }()
	_, _ = io.Copy(data, conn)
}

func gatewayPod(name string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "windlass", Name: name, Labels: map[string]string{
			"app.kubernetes.io/name": "fn", "app.kubernetes.io/part-of": "windlass", "app.kubernetes.io/component": "gateway"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway", Ports: []corev1.ContainerPort{
			{Name: "ops", ContainerPort: 8081}, {Name: "http", ContainerPort: 8080}}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// tunnelTo is a tunnel to a gateway that listens at an address.
func tunnelTo(t *testing.T, address string) (*Tunnel, *forwarding) {
	t.Helper()
	f := &forwarding{t: t, address: address}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	pods, err := newPodClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c := NewWith(Deps{Context: "test", Streams: pods, Kube: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(
		gatewayPod("gateway-0", corev1.ConditionFalse), gatewayPod("gateway-1", corev1.ConditionTrue)).Build()})
	tunnel, err := c.OpenTunnel(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return tunnel, f
}

func send(t *testing.T, tunnel *Tunnel, method, path string, body io.Reader) (*http.Response, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://gateway.windlass"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	return (&http.Transport{DisableKeepAlives: true, DialContext: tunnel.Dial}).RoundTrip(request)
}

func TestATunnelLeadsToTheGateway(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %d %s", r.Method, r.URL, len(body), r.Host)
	}))
	defer gateway.Close()
	tunnel, f := tunnelTo(t, strings.TrimPrefix(gateway.URL, "http://"))
	if tunnel.Pod != "windlass/gateway-1" {
		t.Errorf("the tunnel leads to %s, which is not the gateway that is ready", tunnel.Pod)
	}
	for range 3 {
		response, err := send(t, tunnel, "POST", "/function/f.default?x=1", strings.NewReader(strings.Repeat("b", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || string(got) != "POST /function/f.default?x=1 1048576 gateway.windlass" {
			t.Errorf("the answer is %.100q, %v", got, err)
		}
	}
	if port, dials := f.ports.Load(), f.dials.Load(); port != "8080" || dials != 3 {
		t.Errorf("%d connections were made, the last to the port %v", dials, port)
	}
	if err := tunnel.Close(); err != nil {
		t.Error(err)
	}
}

func TestATunnelSaysWhyItEnds(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	tunnel, f := tunnelTo(t, "127.0.0.1:1")
	_, err := send(t, tunnel, "GET", "/", nil)
	if err == nil || !strings.Contains(err.Error(), "windlass/gateway-1") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("the error is %v", err)
	}
	if dials := f.dials.Load(); dials != 1 {
		t.Errorf("%d connections were made", dials)
	}
	if err := tunnel.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	current := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, current) })
	arrived, leave := make(chan struct{}), make(chan struct{})
	gateway := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(arrived)
		<-leave
	}))
	defer gateway.Close()
	defer close(leave)
	tunnel, _ := tunnelTo(t, strings.TrimPrefix(gateway.URL, "http://"))
	failed := make(chan error, 1)
	go func() {
		_, err := send(t, tunnel, "GET", "/", nil)
		failed <- err
	}()
	<-arrived
	_ = tunnel.Close()
	select {
	case err := <-failed:
		if err == nil {
			t.Error("a request was answered by nobody")
		}
	case <-time.After(10 * time.Second):
		t.Error("the request goes on")
	}
}

func TestNoGatewayIsReady(t *testing.T) {
	ending := gatewayPod("ending", corev1.ConditionTrue)
	ending.DeletionTimestamp, ending.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"x/y"}
	c := NewWith(Deps{Context: "test", Kube: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(gatewayPod("a", corev1.ConditionFalse), ending).Build()})
	_, err := c.OpenTunnel(t.Context(), "windlass")
	wantError(t, err, ReasonNoPod, "no gateway is ready in the namespace windlass of the cluster of the context test, 2 are not ready", "--gateway")
}

// Somebody who may create pods in a namespace can give one the labels of a gateway, and would get API keys and the
// bodies of calls.
func TestPodsOfAnotherNamespaceAreNotTakenForWindlass(t *testing.T) {
	var objects []client.Object
	for _, part := range []string{"gateway", "scheduler"} {
		genuine, tenants := gatewayPod(part+"-0", corev1.ConditionFalse), gatewayPod(part+"-0", corev1.ConditionTrue)
		tenants.Namespace = "aaa"
		genuine.Labels[labelComponent], tenants.Labels[labelComponent] = part, part
		objects = append(objects, genuine, tenants)
	}
	kube := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects...).Build()
	c := NewWith(Deps{Context: "test", Kube: kube, Streams: &fakeScheduler{refused: errors.New("dialled")}, Logs: logsOf(nil)})
	for name, ask := range map[string]func() error{
		"a call": func() error { _, err := c.OpenTunnel(t.Context(), ""); return err },
		"keys":   func() error { _, err := c.Keys(t.Context(), ""); return err },
		"new keys": func() error {
			return c.EditKeys(t.Context(), "", func([]byte) ([]byte, error) { return []byte("keys"), nil })
		},
		"decisions":     func() error { _, err := c.DecisionGetter("").Decisions(t.Context(), web); return err },
		"a sample":      func() error { _, err := c.Snapshotter("", time.Now).Sample(t.Context()); return err },
		"logs of calls": func() error { _, err := c.LookUpCall(t.Context(), "", storyID); return err },
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, ask(), ReasonAmbiguous, "pods in the namespaces aaa, windlass of the cluster of the context test", "--windlass-namespace")
		})
	}
	var secrets corev1.SecretList
	if err := kube.List(t.Context(), &secrets); err != nil || len(secrets.Items) > 0 {
		t.Errorf("%d lists of keys were written, %v", len(secrets.Items), err)
	}
}

// silentDialer waits for an answer until it is released.
type silentDialer struct {
	release chan struct{}
	closed  atomic.Int32
}

func (d *silentDialer) DialPod(string, string) (httpstream.Connection, error) {
	<-d.release
	return &lateConnection{dialer: d}, nil
}

// lateConnection counts that it is closed.
type lateConnection struct {
	connection
	dialer *silentDialer
}

func (c *lateConnection) Close() error {
	c.dialer.closed.Add(1)
	return nil
}

func TestNobodyWaitsLongForASilentNode(t *testing.T) {
	scheduler := gatewayPod("s-0", corev1.ConditionTrue)
	scheduler.Labels[labelComponent] = "scheduler"
	kube := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(gatewayPod("gateway-1", corev1.ConditionTrue), scheduler).Build()
	for name, ask := range map[string]func(context.Context, *Client) error{
		"a sample": func(ctx context.Context, c *Client) error {
			o := c.Snapshotter("", time.Now)
			_, err := o.Sample(ctx)
			return errors.Join(err, o.Close())
		},
		"decisions": func(ctx context.Context, c *Client) error {
			h := c.DecisionGetter("")
			_, err := h.Decisions(ctx, web)
			return errors.Join(err, h.Close())
		},
		"a call": func(ctx context.Context, c *Client) error {
			_, err := c.OpenTunnel(ctx, "")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				silent := &silentDialer{release: make(chan struct{})}
				c := NewWith(Deps{Context: "test", Kube: kube, Streams: silent})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				wantError(t, ask(ctx, c), ReasonUnreachable, "in time: see whether its node answers")
				close(silent.release)
				synctest.Wait()
				if silent.closed.Load() == 0 {
					t.Error("the connection that came late stays open")
				}
			})
		})
	}
}

// someNodes are dialed one after the other; each says what comes of it.
type someNodes struct {
	mu    sync.Mutex
	asked []string
	dial  map[string]func() (httpstream.Connection, error)
}

func (d *someNodes) DialPod(_, pod string) (httpstream.Connection, error) {
	d.mu.Lock()
	d.asked = append(d.asked, pod)
	d.mu.Unlock()
	return d.dial[pod]()
}

func TestATunnelLeadsToTheFirstGatewayThatConnects(t *testing.T) {
	gone := func() (httpstream.Connection, error) {
		return nil, apierrors.NewInternalError(errors.New("error dialing backend: dial tcp 10.0.0.1:10250: i/o timeout"))
	}
	forbidden := func() (httpstream.Connection, error) {
		return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods/portforward"}, "a", errors.New(`User "u" cannot create resource "pods/portforward" in API group "" in the namespace "windlass"`))
	}
	connects := func() (httpstream.Connection, error) { return &lateConnection{dialer: &silentDialer{}}, nil }
	for name, tt := range map[string]struct {
		a, b  func() (httpstream.Connection, error)
		to    string
		asked string
		fails Reason
	}{
		"both serve":        {connects, connects, "windlass/a", "[a]", ""},
		"one is gone":       {gone, connects, "windlass/b", "[a b]", ""},
		"one is silent":     {nil, connects, "windlass/b", "[a b]", ""},
		"both are gone":     {gone, gone, "", "[a b]", ReasonRefused},
		"no right for both": {forbidden, connects, "", "[a]", ReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				if tt.a == nil {
					tt.a = func() (httpstream.Connection, error) {
						<-ctx.Done()
						return gone()
					}
				}
				d := &someNodes{dial: map[string]func() (httpstream.Connection, error){"a": tt.a, "b": tt.b}}
				c := NewWith(Deps{Context: "test", Streams: d, Kube: fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(
					gatewayPod("a", corev1.ConditionTrue), gatewayPod("b", corev1.ConditionTrue)).Build()})
				tunnel, err := c.OpenTunnel(ctx, "")
				if tt.fails != "" {
					wantError(t, err, tt.fails, "the call was not sent", "--gateway")
				} else if err != nil || tunnel.Pod != tt.to {
					t.Errorf("the tunnel is %+v, %v", tunnel, err)
				}
				d.mu.Lock()
				defer d.mu.Unlock()
				if asked := fmt.Sprint(d.asked); asked != tt.asked {
					t.Errorf("dialled %s, want %s", asked, tt.asked)
				}
			})
		})
	}
}

// mute is a connection whose streams open only when it is closed.
type mute struct {
	connection
	closed chan struct{}
}

func (c mute) CreateStream(http.Header) (httpstream.Stream, error) {
	<-c.closed
	return nil, errors.New("closed")
}

func (c mute) Close() error {
	close(c.closed)
	return nil
}

func TestNobodyWaitsLongForASilentAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tunnel := &Tunnel{Pod: "windlass/gateway-1", to: "gateway", conn: mute{closed: make(chan struct{})}}
		began := time.Now()
		time.AfterFunc(30*time.Second, func() { _ = tunnel.Close() })
		_, err := tunnel.Dial(t.Context(), "", "")
		if waited := time.Since(began); waited > dialTimeout {
			t.Errorf("it waited for %v", waited)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the API server has not opened a connection of the port-forward to the gateway windlass/gateway-1 in time") {
			t.Errorf("the error is %v", err)
		}
		time.Sleep(time.Minute)
	})
}
