package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/internal/monitor"
	"github.com/windlass-dev/windlass/internal/monitor/scrape"
)

const (
	// relistInterval is how often a Snapshotter lists the pods again.
	relistInterval = 5 * time.Second
	// failedInterval is how often it does while one fails, which may be gone.
	failedInterval = time.Second
	// maxLatest is the longest answer about decisions on all functions, in bytes.
	maxLatest = 8 << 20
	// scrapes is how many node agents are asked at a time. Gateways and schedulers are few, so all of
	// them are asked at once, whichever of them are silent.
	scrapes = 16
	// mostNodeAgents is how many node agents are asked. There is one on each node, and a connection
	// through the API server to each of thousands is more than a look is worth.
	mostNodeAgents = 64
)

// gatewayOperations is where gateways tell of themselves.
var gatewayOperations = component{name: "gateway", port: "ops"}

// nodeAgents order the calls of their nodes, if they are switched on.
var nodeAgents = component{name: "node", port: "ops"}

// Snapshotter takes samples of the metrics of all gateways, schedulers and node agents. It keeps its
// connections open until it is closed. It is for one goroutine.
type Snapshotter struct {
	windlass  *components
	namespace string
	now       func() time.Time

	listed time.Time
	pods   []*scrapedPod
	// unasked says which node agents are left out; empty if none are.
	unasked string
}

// scrapedPod is a pod whose metrics are read.
type scrapedPod struct {
	pod    corev1.Pod
	part   component
	tunnel *Tunnel
	err    error
}

// Snapshotter asks the gateways and schedulers of a namespace or, if that is empty, of
// any. It connects to nothing yet. Close must be called on it.
func (c *components) Snapshotter(namespace string, now func() time.Time) *Snapshotter {
	return &Snapshotter{windlass: c, namespace: namespace, now: now}
}

// Close ends all connections.
func (o *Snapshotter) Close() error {
	var errs []error
	for _, p := range o.pods {
		errs = append(errs, p.close())
	}
	o.pods = nil
	return errors.Join(errs...)
}

// Sample has the metrics of all pods that answer before the deadline of ctx. It fails if none does, or if
// ctx is cancelled. New pods are included within some seconds, and pods that are gone are left out.
func (o *Snapshotter) Sample(ctx context.Context) (monitor.Sample, error) {
	if err := o.list(ctx); err != nil {
		return monitor.Sample{}, err
	}
	readings := make([]monitor.Reading, len(o.pods))
	var asked sync.WaitGroup
	turns := make(chan struct{}, scrapes)
	for i, p := range o.pods {
		asked.Go(func() {
			if p.part == nodeAgents {
				turns <- struct{}{}
				defer func() { <-turns }()
			}
			readings[i], p.err = p.readMetrics(ctx, o.windlass)
		})
	}
	asked.Wait()
	told := 0
	for i, p := range o.pods {
		switch {
		case p.err == nil:
			told++
		case Is(p.err, ReasonForbidden), errors.Is(ctx.Err(), context.Canceled):
			return monitor.Sample{}, p.err
		default:
			readings[i] = monitor.Reading{Source: p.source(), Failed: p.err.Error()}
		}
	}
	if told == 0 {
		return monitor.Sample{}, o.pods[0].err
	}
	var notes []string
	if o.unasked != "" {
		notes = append(notes, o.unasked)
	}
	return monitor.Read(o.now(), readings, notes...), nil
}

// list finds the pods anew if that is due.
func (o *Snapshotter) list(ctx context.Context) error {
	interval := relistInterval
	if slices.ContainsFunc(o.pods, func(p *scrapedPod) bool { return p.err != nil }) {
		interval = failedInterval
	}
	if len(o.pods) > 0 && o.now().Sub(o.listed) < interval {
		return nil
	}
	var found []*scrapedPod
	o.unasked = ""
	namespace := o.namespace
	for _, part := range []component{gatewayOperations, schedulers, nodeAgents} {
		pods, all, err := o.windlass.readyPods(ctx, part, namespace)
		if err != nil {
			return err
		}
		if len(pods) == 0 && part == schedulers {
			return &Error{Reason: ReasonNoPod, Message: o.windlass.noneReady(part, o.namespace, all)}
		}
		if left := len(pods) - mostNodeAgents; part == nodeAgents && left > 0 {
			o.unasked = fmt.Sprintf("%d of %d node agents are not asked", left, len(pods))
			pods = pods[:mostNodeAgents]
		}
		for _, pod := range pods {
			namespace = pod.Namespace
			found = append(found, o.podFor(pod, part))
		}
	}
	for _, p := range o.pods {
		if !slices.Contains(found, p) {
			_ = p.close()
		}
	}
	o.pods, o.listed = found, o.now()
	return nil
}

// podFor is the scrapedPod of a pod, with its connection if there is one.
func (o *Snapshotter) podFor(pod corev1.Pod, part component) *scrapedPod {
	for _, p := range o.pods {
		if p.pod.UID == pod.UID && nameOf(&p.pod) == nameOf(&pod) {
			return p
		}
	}
	return &scrapedPod{pod: pod, part: part}
}

func (p *scrapedPod) close() error {
	if p.tunnel == nil {
		return nil
	}
	tunnel := p.tunnel
	p.tunnel = nil
	return tunnel.Close()
}

// source names the pod. One that was made again under its name counts from 0, too.
func (p *scrapedPod) source() string { return nameOf(&p.pod) + " " + string(p.pod.UID) }

// readMetrics reads the metrics of one pod. It closes a broken connection, so that the next
// attempt dials again.
func (p *scrapedPod) readMetrics(ctx context.Context, c *components) (monitor.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if p.tunnel == nil {
		tunnel, err := c.openTunnel(ctx, &p.pod, p.part)
		if err != nil {
			return monitor.Reading{}, err
		}
		p.tunnel = tunnel
	}
	reading := monitor.Reading{Source: p.source()}
	if p.part == nodeAgents {
		reading.Node = p.pod.Spec.NodeName
	}
	var err error
	if reading.Families, err = scrape.Metrics(ctx, p.tunnel.transport(), operations+"/metrics"); err == nil && p.part == schedulers {
		err = fetch(ctx, p.tunnel, "/debug/decisions", maxLatest, &reading.Latest)
	}
	if err != nil {
		_ = p.close()
		return reading, &Error{Reason: ReasonRefused, Err: err, Message: fmt.Sprintf("the %s %s does not tell what it does: %v", p.part.name, nameOf(&p.pod), err)}
	}
	return reading, nil
}
