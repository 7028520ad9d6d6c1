package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/controller"
)

const (
	// reportInterval is how often a scheduler tells of what has changed.
	reportInterval = 500 * time.Millisecond
	// calmTime is how long the beginnings of a load are not counted, and countTime how long
	// it is: counts of a function come in rounds of 36 s, of which it has four.
	calmTime, countTime = 75 * time.Second, 144 * time.Second
	// codeBytes is how long the code of a function is, and codeMark where it begins.
	codeBytes = 20 << 10
	codeMark  = "# the code of a busy function"
	// makers is how many functions are made at a time.
	makers = 16
)

// load is what the functions are busy with.
type load struct {
	name string
	// scales says that instances come and go all the time, and not only calls.
	scales bool
}

var loads = []load{{name: "calls"}, {name: "scaling", scales: true}}

// measureWrites counts what the controller writes while n functions are busy.
func measureWrites(ctx context.Context, out io.Writer, folder string, n int) (err error) {
	env := &envtest.Environment{
		BinaryAssetsDirectory: folder, ControlPlaneStartTimeout: time.Minute,
		CRDDirectoryPaths: []string{filepath.Join("config", "crd")}, ErrorIfCRDPathMissing: true,
	}
	config, err := env.Start()
	defer func() { err = errors.Join(err, env.Stop()) }()
	if err != nil {
		return err
	}
	config.QPS = -1
	units, err := furnishBusy(ctx, config, n)
	if err != nil {
		return err
	}
	seen := &writes{}
	stop, err := units.control(ctx, config, seen)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := units.await(ctx); err != nil {
		return err
	}
	fmt.Fprintf(out, "functions=%d\nlength=%v\n", n, countTime)
	for _, l := range loads {
		units.begin(l)
		if !sleep.For(ctx, calmTime) {
			return ctx.Err()
		}
		seen.reset()
		if !sleep.For(ctx, countTime) {
			return ctx.Err()
		}
		seen.report(out, l.name)
	}
	return nil
}

// writes counts requests that write, by what they write.
type writes struct {
	next http.RoundTripper

	mu       sync.Mutex
	of       map[string]int
	refused  map[string]int
	bytes    int64
	withCode int
}

// RoundTrip counts, passes on, and counts what the API server refuses.
func (w *writes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		return w.next.RoundTrip(r)
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	w.mu.Lock()
	w.of[kindOf(r.URL.Path)]++
	w.bytes += int64(len(body))
	if bytes.Contains(body, []byte(codeMark)) {
		w.withCode++
	}
	w.mu.Unlock()
	answer, err := w.next.RoundTrip(r)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		w.mu.Lock()
		w.refused[fmt.Sprintf("%s_%d", kindOf(r.URL.Path), answer.StatusCode)]++
		w.mu.Unlock()
	}
	return answer, err
}

func (w *writes) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of, w.refused, w.bytes, w.withCode = make(map[string]int), make(map[string]int), 0, 0
}

func (w *writes) report(out io.Writer, load string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, kinds := 0, []string{"functions", "functions_status", "functionrevisions", "functionrevisions_status", "events", "leases"}
	for kind, n := range w.of {
		all += n
		if !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	rate := func(n float64) string { return fmt.Sprintf("%.4g", n/countTime.Seconds()) }
	fmt.Fprintf(out, "api_writes_per_second_%s=%s\n", load, rate(float64(all)))
	for _, kind := range kinds {
		fmt.Fprintf(out, "api_writes_per_second_%s_%s=%s\n", load, kind, rate(float64(w.of[kind])))
	}
	for _, what := range slices.Sorted(maps.Keys(w.refused)) {
		fmt.Fprintf(out, "api_writes_refused_%s_%s=%d\n", load, what, w.refused[what])
	}
	fmt.Fprintf(out, "api_bytes_per_second_%s=%s\napi_writes_with_code_%s=%d\n", load, rate(float64(w.bytes)), load, w.withCode)
}

// kindOf is the resource of a path, with its subresource.
func kindOf(path string) string {
	_, of, namespaced := strings.Cut(path, "/namespaces/")
	parts := strings.Split(of, "/")
	switch {
	case !namespaced || len(parts) < 2:
		return "other"
	case len(parts) > 3:
		return parts[1] + "_" + parts[3]
	default:
		return parts[1]
	}
}

// busyController are functions that are told of, as a scheduler does.
type busyController struct {
	controlwire.UnimplementedSchedulerServer
	client client.Client
	n      int

	mu    sync.Mutex
	load  load
	facts []*controlwire.FunctionFacts
}

// furnishBusy makes the functions and their runtime.
func furnishBusy(ctx context.Context, config *rest.Config, n int) (*busyController, error) {
	scheme, err := controller.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	runtime := &v1alpha1.ClusterRuntime{ObjectMeta: metav1.ObjectMeta{Name: "any"}, Spec: v1alpha1.ClusterRuntimeSpec{Image: "any:1"}}
	if err := errors.Join(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}), c.Create(ctx, runtime)); err != nil {
		return nil, err
	}
	code := codeMark + strings.Repeat("\n#", codeBytes/2)
	numbers, errs := make(chan int), make(chan error, makers)
	for range makers {
		go func() {
			var failed error
			for i := range numbers {
				f := &v1alpha1.Function{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("busy-%04d", i)}}
				f.Spec.Template.RuntimeRef.Name = v1alpha1.RuntimeName(runtime.Name)
				f.Spec.Template.Handler, f.Spec.Template.Code = "main.handle", &v1alpha1.Code{Inline: code}
				failed = errors.Join(failed, c.Create(ctx, f))
			}
			errs <- failed
		}()
	}
	for i := range n {
		numbers <- i
	}
	close(numbers)
	for range makers {
		err = errors.Join(err, <-errs)
	}
	return &busyController{client: c, n: n}, err
}

// control runs the controller, whose requests are counted, and the scheduler that tells it
// of the functions. The controller may ask as often as it likes: a bound would hide what it
// wants to write.
func (b *busyController) control(ctx context.Context, config *rest.Config, seen *writes) (stop func() error, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	controlwire.RegisterSchedulerServer(server, b)
	go func() { _ = server.Serve(listener) }()
	counted := rest.CopyConfig(config)
	seen.reset()
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper {
		seen.next = next
		return seen
	})
	c, err := controller.New(controller.Config{
		Namespace: namespace, SchedulerService: "windlass-scheduler", LeaderElection: true,
	}, controller.Deps{
		REST: counted, Dial: []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())},
		Schedulers: only(listener.Addr().String()), Registerer: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		server.Stop()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	return func() error {
		cancel()
		defer server.Stop()
		return <-ended
	}, nil
}

// only is the address of the one scheduler.
type only string

// Addresses implements controller.Schedulers.
func (o only) Addresses(context.Context) ([]string, <-chan struct{}, error) {
	return []string{string(o)}, nil, nil
}

// await returns when all functions are ready: an instance of each has started.
func (b *busyController) await(ctx context.Context) error {
	for {
		var revisions v1alpha1.FunctionRevisionList
		if err := b.client.List(ctx, &revisions); err != nil {
			return err
		}
		b.tellOf(revisions.Items)
		proven := 0
		for i := range revisions.Items {
			if revisions.Items[i].Proven() {
				proven++
			}
		}
		if proven == b.n {
			return nil
		}
		if !sleep.For(ctx, time.Second) {
			return ctx.Err()
		}
	}
}

// tellOf adds revisions that are told of from now on.
func (b *busyController) tellOf(revisions []v1alpha1.FunctionRevision) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts = b.facts[:0]
	for i := range revisions {
		r := &revisions[i]
		b.facts = append(b.facts, &controlwire.FunctionFacts{
			FunctionUid: string(r.UID), Namespace: r.Namespace, Name: r.Spec.FunctionName, Revision: r.Label(),
			Generation: r.Spec.Number, Created: 3, Started: true,
		})
	}
}

func (b *busyController) begin(l load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.load = l
}

// Watch tells of all functions twice a second: all of them are busy.
func (b *busyController) Watch(_ *controlwire.WatchRequest, stream grpc.ServerStreamingServer[controlwire.WatchReply]) error {
	ticker := time.NewTicker(reportInterval)
	defer ticker.Stop()
	for {
		for told := range slices.Chunk(b.next(), 256) {
			if err := stream.Send(&controlwire.WatchReply{Functions: told}); err != nil {
				return err
			}
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-ticker.C:
		}
	}
}

// next is what has become of all functions.
func (b *busyController) next() []*controlwire.FunctionFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	told := make([]*controlwire.FunctionFacts, len(b.facts))
	for i, last := range b.facts {
		f := &controlwire.FunctionFacts{
			FunctionUid: last.GetFunctionUid(), Namespace: last.GetNamespace(), Name: last.GetName(), Revision: last.GetRevision(),
			Generation: last.GetGeneration(), Started: true, Created: last.GetCreated(),
			Queued: rand.Uint32N(20), MeanExecNs: rand.Int64N(1e9), MeanStartNs: rand.Int64N(1e10),
		}
		if b.load.scales {
			f.Created, f.Creating = 1+rand.Uint32N(20), rand.Uint32N(5)
		}
		f.Busy = rand.Uint32N(f.GetCreated() + 1)
		told[i], b.facts[i] = f, f
	}
	return told
}
