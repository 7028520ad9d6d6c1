package kubeclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// component is a part of Windlass whose pods can be asked something.
type component struct {
	name string
	// port is the name of the one that is asked.
	port string
}

var (
	gateways   = component{name: "gateway", port: "http"}
	schedulers = component{name: "scheduler", port: "ops"}
)

// components finds the pods of Windlass itself, and the ways to them.
type components struct {
	*cluster
	streams StreamDialer
}

// labels are on its pods, also where the chart has another name.
func (p component) labels() client.MatchingLabels {
	return client.MatchingLabels{"app.kubernetes.io/part-of": "windlass", labelComponent: p.name}
}

// Tunnel leads to a pod of Windlass through the API server. It takes no port of
// this machine, which others could use as well.
type Tunnel struct {
	// Pod is that of the gateway or scheduler, as namespace/name.
	Pod string
	// to says what it leads to.
	to   string
	port int32
	conn httpstream.Connection
	// listening waits for what streams say about problems.
	listening sync.WaitGroup
	mu        sync.Mutex
	// dialled makes every stream's number another one.
	dialled int
}

// OpenTunnel connects to a gateway that is ready, in a namespace or, if that is
// empty, in any. Close must be called on the Tunnel.
func (c *components) OpenTunnel(ctx context.Context, namespace string) (*Tunnel, error) {
	pods, err := c.gatewayPods(ctx, namespace)
	if err != nil {
		return nil, err
	}
	tunnel, err := c.openFirst(ctx, pods, gateways)
	if err != nil {
		return nil, fmt.Errorf("%w\nthe call was not sent; without a port-forward, name the gateway's URL with --gateway", err)
	}
	return tunnel, nil
}

// openFirst connects to the first of pods that answers, and shares the time between them: one on a
// node that is gone is ready for a while yet. The error is that of the first pod.
func (c *components) openFirst(ctx context.Context, pods []corev1.Pod, to component) (*Tunnel, error) {
	var first error
	for i := range pods {
		tunnel, err := c.openWithin(ctx, &pods[i], to, len(pods)-i)
		if err == nil {
			return tunnel, nil
		}
		first = cmp.Or(first, err)
		if Is(err, ReasonForbidden) || ctx.Err() != nil {
			break
		}
	}
	return nil, first
}

// openWithin connects within one of several shares of the time that is left.
func (c *components) openWithin(ctx context.Context, pod *corev1.Pod, to component, shares int) (*Tunnel, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(shares))
		defer cancel()
	}
	return c.openTunnel(ctx, pod, to)
}

// gatewayPods are the gateways' pods that are ready, at least one.
func (c *components) gatewayPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	pods, all, err := c.readyPods(ctx, gateways, namespace)
	switch {
	case Is(err, ReasonForbidden):
		return nil, fmt.Errorf("%w, or the gateway's URL with --gateway", err)
	case err == nil && len(pods) == 0:
		return nil, &Error{Reason: ReasonNoPod, Message: c.noneReady(gateways, namespace, all) + ", or name the gateway's URL with --gateway"}
	}
	return pods, err
}

func (c *components) openTunnel(ctx context.Context, pod *corev1.Pod, to component) (*Tunnel, error) {
	conn, err := c.dial(ctx, pod)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &Error{Reason: ReasonUnreachable, Err: err, Message: fmt.Sprintf(
			"no connection to the %s %s in time: see whether its node answers, with kubectl get nodes --context %s", to.name, nameOf(pod), c.context)}
	case err != nil:
		return nil, fmt.Errorf("%w\na port-forward to pods in the namespace %s needs the right to create pods/portforward",
			c.explain(invocation.FunctionKey{Namespace: pod.Namespace}, err), pod.Namespace)
	}
	return &Tunnel{Pod: nameOf(pod), to: to.name, port: portNamed(pod, to.port), conn: conn}, nil
}

// dial returns when ctx ends, too. The dialers of the client library take no context: one that waits for a
// silent node goes on until the network gives up, and what it connects then is closed.
func (c *components) dial(ctx context.Context, pod *corev1.Pod) (httpstream.Connection, error) {
	connect := func() (httpstream.Connection, error) { return c.streams.DialPod(pod.Namespace, pod.Name) }
	return untilDone(ctx, connect, func(conn httpstream.Connection) { _ = conn.Close() }, ctx.Err)
}

// untilDone opens something or, when ctx ends before, fails. What opens later is closed.
func untilDone[T any](ctx context.Context, open func() (T, error), discard func(T), late func() error) (T, error) {
	type answer struct {
		opened T
		err    error
	}
	answers := make(chan answer)
	go func() {
		opened, err := open()
		select {
		case answers <- answer{opened, err}:
		case <-ctx.Done():
			if err == nil {
				discard(opened)
			}
		}
	}()
	select {
	case a := <-answers:
		return a.opened, a.err
	case <-ctx.Done():
		var none T
		return none, late()
	}
}

// readyPods are those of a component that are ready, in a namespace or, if that is
// empty, in any; and how many there are, ready or not.
func (c *components) readyPods(ctx context.Context, of component, namespace string) (ready []corev1.Pod, all int, err error) {
	pods, err := c.allPods(ctx, of, namespace)
	if err != nil {
		return nil, 0, err
	}
	all = len(pods)
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return portNamed(&pod, of.port) == 0 || !isReady(&pod) }), all, nil
}

// allPods are those of a component, ready or not, by their names. Anybody who may create pods can give
// them these labels, so it chooses between no namespaces.
func (c *components) allPods(ctx context.Context, of component, namespace string) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := c.kube.List(ctx, &list, client.InNamespace(namespace), of.labels()); err != nil {
		err = c.explain(invocation.FunctionKey{Namespace: namespace}, err)
		if Is(err, ReasonForbidden) {
			err = fmt.Errorf("%w\nor name the namespace that Windlass runs in with --windlass-namespace", err)
		}
		return nil, err
	}
	var namespaces []string
	for i := range list.Items {
		namespaces = append(namespaces, list.Items[i].Namespace)
	}
	slices.Sort(namespaces)
	if namespaces = slices.Compact(namespaces); len(namespaces) > 1 {
		return nil, &Error{Reason: ReasonAmbiguous, Message: fmt.Sprintf(
			"pods in the namespaces %s of the cluster of the context %s have the labels of a %s of Windlass: name the one that Windlass runs in with --windlass-namespace",
			strings.Join(namespaces, ", "), c.context, of.name)}
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

func (c *components) noneReady(of component, namespace string, all int) string {
	where := "any namespace"
	if namespace != "" {
		where = "the namespace " + namespace
	}
	if all == 0 {
		return fmt.Sprintf("Windlass is not installed in %s of the cluster of the context %s (no %s pod found): see docs/install.md", where, c.context, of.name)
	}
	return fmt.Sprintf(
		"no %s is ready in %s of the cluster of the context %s, %d are not ready: see kubectl get pods --all-namespaces --selector app.kubernetes.io/part-of=windlass --context %s",
		of.name, where, c.context, all, c.context)
}

func portNamed(pod *corev1.Pod, name string) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name {
				return port.ContainerPort
			}
		}
	}
	return 0
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// Close ends the connection and all its streams.
func (t *Tunnel) Close() error {
	err := t.conn.Close()
	t.listening.Wait()
	return err
}

// dialTimeout is how long the API server may take to open a connection through it.
const dialTimeout = 5 * time.Second

// Dial is for an http.Transport, whose address it ignores. The streams take no context: one that waits for
// a silent API server goes on for a while, and what it opens then is closed.
func (t *Tunnel) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return untilDone(ctx, t.openStream, func(s net.Conn) { _ = s.Close() }, func() error {
		return fmt.Errorf("the API server has not opened a connection of the port-forward to the %s %s in time: %w", t.to, t.Pod, ctx.Err())
	})
}

// openStream opens a connection to the pod.
func (t *Tunnel) openStream() (net.Conn, error) {
	t.mu.Lock()
	t.dialled++
	id := strconv.Itoa(t.dialled)
	t.mu.Unlock()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(t.port)))
	headers.Set(corev1.PortForwardRequestIDHeader, id)
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	problems, err := t.conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("the port-forward to the %s %s broke: %w", t.to, t.Pod, err)
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := t.conn.CreateStream(headers)
	if err != nil {
		t.conn.RemoveStreams(problems)
		return nil, fmt.Errorf("the port-forward to the %s %s broke: %w", t.to, t.Pod, err)
	}
	s := &stream{Stream: data, tunnel: t, problems: problems, told: make(chan struct{})}
	t.listening.Go(s.listen)
	return s, nil
}

// stream is one connection to the pod.
type stream struct {
	httpstream.Stream
	tunnel   *Tunnel
	problems httpstream.Stream
	// told is closed when the other side will say no more about problems, and
	// problem is what it said.
	told    chan struct{}
	problem string
}

// maxProblem is how much the other side may say about a problem, in bytes.
const maxProblem = 4 << 10

func (s *stream) listen() {
	defer close(s.told)
	text, _ := io.ReadAll(io.LimitReader(s.problems, maxProblem))
	s.problem = strings.TrimSpace(string(text))
}

// Read says why the connection ended if it did not end well.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	if n > 0 || err == nil || !errors.Is(err, io.EOF) {
		return n, err
	}
	select {
	case <-s.told:
		if s.problem != "" {
			return 0, fmt.Errorf("the port-forward to the %s %s: %s", s.tunnel.to, s.tunnel.Pod, s.problem)
		}
	case <-time.After(problemTime):
	}
	return 0, err
}

// problemTime is how long after the end of the data its reason may come.
const problemTime = 100 * time.Millisecond

// Close ends both streams, so that nothing waits for what nobody reads.
func (s *stream) Close() error {
	err := s.Stream.Reset()
	_ = s.problems.Reset()
	s.tunnel.conn.RemoveStreams(s.Stream, s.problems)
	return err
}

func (s *stream) LocalAddr() net.Addr              { return streamAddr(s.tunnel.Pod) }
func (s *stream) RemoteAddr() net.Addr             { return streamAddr(s.tunnel.Pod) }
func (*stream) SetDeadline(time.Time) error        { return nil }
func (*stream) SetReadDeadline(time.Time) error    { return nil }
func (*stream) SetWriteDeadline(t time.Time) error { return nil }

// streamAddr is the pod at the other end.
type streamAddr string

func (streamAddr) Network() string  { return "pod" }
func (a streamAddr) String() string { return string(a) }
