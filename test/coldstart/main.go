// Command coldstart measures the phases of cold starts in a cluster that does
// nothing else, from the HTTP request to its answer. The image must be there.
//
//	go run ./test/coldstart --kubeconfig K [--gateway URL] [--runs 20] [--image IMAGE]
//
// Each run makes a Function of its own, calls it once, and deletes it. It prints
// lines name=value, in milliseconds; the phases of a run are in order and add up
// to its total:
//
//   - decide: from the request until the scheduler launched the instance, which is
//     the pod's annotation windlass.dev/decided (nanoseconds).
//   - api_create: until a watch of ours has shown the pod (nanoseconds).
//   - bind: 0, because Windlass itself writes spec.nodeName.
//   - sandbox: until the first process of the pod's shim, which holds its network,
//     has started: kubelet, volumes, network (start times in /proc, 10 ms).
//   - containers: until the later of agent and function has started (10 ms).
//   - ready: until the scheduler has logged that the instance asks for work: the
//     function's own start, and how soon the agent notices (10 ms).
//   - claim: until the gateway has granted the call to the instance, which is the
//     answer's header Server-Timing, queue, after the time in the invocation's id (1 ms).
//   - execution: function in the answer's header Server-Timing.
//   - return: until the client has the answer.
//
// agent_hello runs beside them: from the start of the agent until the scheduler
// has logged that it joined (10 ms). What cannot be observed, such as processes
// on other machines, is reported as unknown, and so is what depends on it.
//
// It fails if a goal is missed. A goal is unknown if a phase that it is about is.
//
// All clocks must agree: the client's, the gateways', and the nodes'. In a cluster
// on one machine there is only one. implausible counts the runs in which a phase
// took less than no time by more than the resolution.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/test/tenant"
)

// Goals for the medians.
const (
	goalTotal = 1500 * time.Millisecond
	goalOurs  = 100 * time.Millisecond
)

// runLimit bounds one run.
const runLimit = 2 * time.Minute

type options struct {
	kubeconfig, gateway, release, image string
	runs, warmups                       int
}

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "path of an administrator's kubeconfig")
	flag.StringVar(&o.gateway, "gateway", "", "URL of the gateways; the Service's address by default")
	flag.StringVar(&o.release, "release-namespace", "windlass", "namespace of Windlass")
	flag.StringVar(&o.image, "image", "windlass.test/test-functions:dev", "image of the function; it is run with the argument httpd")
	flag.IntVar(&o.runs, "runs", 20, "cold starts to measure")
	flag.IntVar(&o.warmups, "warmups", 1, "cold starts before those, which bring the image")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "coldstart:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	if o.runs < 1 || o.warmups < 0 {
		return fmt.Errorf("--runs %d must be at least 1, and --warmups %d at least 0", o.runs, o.warmups)
	}
	own, err := tenant.New(ctx, o.kubeconfig, o.release, "coldstart-")
	if err != nil {
		return err
	}
	w := world{own}
	defer func() {
		// Also after an interrupt.
		cleaning, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		err = errors.Join(err, w.Remove(cleaning))
	}()
	if o.gateway == "" {
		if o.gateway, err = w.Gateway(ctx); err != nil {
			return err
		}
	}
	var all []marks
	for n := range o.warmups + o.runs {
		m, err := w.measure(ctx, o, fmt.Sprintf("cold-%d", n))
		if err != nil {
			return fmt.Errorf("run %d: %w", n, err)
		}
		if n >= o.warmups {
			all = append(all, m)
		}
	}
	return report(os.Stdout, all)
}

// measure makes a function, calls it for the first time, and removes it.
func (w world) measure(ctx context.Context, o options, name string) (m marks, err error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	fn, err := w.create(ctx, name, o.image)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, w.Delete(ctx, fn)) }()
	seen, stop, err := w.firstPod(ctx, name)
	if err != nil {
		return m, err
	}
	defer stop()
	// What made the function and opened the watch has its moment to end.
	sleep.For(ctx, time.Second)
	if m, err = call(ctx, strings.TrimSuffix(o.gateway, "/")+"/function/"+name+"."+w.Namespace+"/"); err != nil {
		return m, err
	}
	var first sighting
	select {
	case first = <-seen:
	case <-ctx.Done():
		return m, ctx.Err()
	}
	m.decided, m.created = decidedAt(first.pod), first.at
	agent, function, err := w.containers(ctx, first.pod.Name)
	if err != nil {
		return m, err
	}
	processes, err := findStarted(agent, function)
	if err != nil {
		return m, err
	}
	m.sandbox, m.agent, m.function = processes.sandbox, processes.agent, processes.function
	m.joined, m.ready, err = w.logged(ctx, name, m.sent)
	return m, err
}

// call calls a function, on a connection that stands already, and takes the marks
// that the client has.
func call(ctx context.Context, url string) (m marks, err error) {
	transport := loadgen.NewTransport(1)
	defer transport.CloseIdleConnections()
	client := loadgen.Client{Transport: transport}
	get := func(url string) loadgen.Call {
		return client.Do(ctx, loadgen.Request{Method: http.MethodGet, URL: url, Resend: true})
	}
	base, _, _ := strings.Cut(url, "/function/")
	if c := get(base + "/"); c.Err != nil {
		return m, c.Err
	}
	c := get(url)
	timing, known := invocation.ParseTiming(c.Header[invocation.HeaderTiming])
	m.sent, m.answered = c.Began, c.Ended
	switch {
	case c.Err != nil:
		return m, c.Err
	case c.Status != http.StatusOK:
		return m, fmt.Errorf("the call was answered with %d %s", c.Status, http.StatusText(c.Status))
	case !known:
		return m, fmt.Errorf("the answer's header %s is %q", invocation.HeaderTiming, c.Header[invocation.HeaderTiming])
	case !timing.Cold:
		return m, errors.New("the call did not start an instance: is the function's scaling.minInstances 0?")
	}
	m.execution = timing.Function
	id, err := invocation.ParseID(c.Header.Get(invocation.HeaderInvocationID))
	if err != nil {
		return m, err
	}
	m.granted = admitted(id).Add(timing.Queue)
	return m, nil
}

// admitted is when the gateway made an id.
func admitted(id invocation.ID) time.Time {
	var ms [8]byte
	copy(ms[2:], id[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:])))
}
