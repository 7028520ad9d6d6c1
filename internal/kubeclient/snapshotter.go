package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// patience is how long a sample waits for more pods when some have answered: one that hangs must not
	// slow down what people see of the others.
	patience = time.Second
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
	// turns are those of node agents.
	turns chan struct{}
	// arrived says that there are answers.
	arrived chan struct{}
	// unasked says which node agents are left out; empty if none are.
	unasked string
}

// scrapedPod is a pod whose metrics are read.
type scrapedPod struct {
	pod    corev1.Pod
	part   component
	tunnel *Tunnel
	err    error
	// answers has what it says, and stop ends the question; nil while it is asked nothing.
	answers chan answer
	stop    context.CancelFunc
}

// answer is what a pod says.
type answer struct {
	reading monitor.Reading
	err     error
}

// Snapshotter asks the gateways and schedulers of a namespace or, if that is empty, of
// any. It connects to nothing yet. Close must be called on it.
func (c *components) Snapshotter(namespace string, now func() time.Time) *Snapshotter {
	return &Snapshotter{windlass: c, namespace: namespace, now: now, turns: make(chan struct{}, scrapes), arrived: make(chan struct{}, 1)}
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

// Sample has the metrics of all pods that answer soon, and what slow ones have answered since the last sample. It fails
// if none answers before the deadline of ctx, or if ctx is cancelled. New pods are included within some seconds, and
// pods that are gone are left out.
func (o *Snapshotter) Sample(ctx context.Context) (monitor.Sample, error) {
	if err := o.list(ctx); err != nil {
		return monitor.Sample{}, err
	}
	readings := o.ask(ctx)
	told := 0
	for i, p := range o.pods {
		switch {
		case p.err == nil:
			told++
		case Is(p.err, ReasonForbidden):
			return monitor.Sample{}, p.err
		case errors.Is(ctx.Err(), context.Canceled):
			return monitor.Sample{}, ctx.Err()
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

// ask asks all pods, except those that have not answered yet, and has what they say so far.
func (o *Snapshotter) ask(ctx context.Context) []monitor.Reading {
	readings := make([]monitor.Reading, len(o.pods))
	for _, p := range o.pods {
		if p.answers == nil {
			o.askPod(ctx, p)
		}
		p.err = errNotYet
	}
	var late <-chan time.Time
	for {
		waiting := false
		for i, p := range o.pods {
			if !errors.Is(p.err, errNotYet) {
				continue
			}
			readings[i] = p.answer()
			waiting = waiting || errors.Is(p.err, errNotYet)
			if p.err == nil && late == nil {
				late = time.After(patience)
			}
		}
		if !waiting {
			return readings
		}
		select {
		case <-o.arrived:
			continue
		case <-late:
		case <-ctx.Done():
		}
		o.noteSilence(ctx)
		return readings
	}
}

// answer is what the pod says, if it has answered.
func (p *scrapedPod) answer() monitor.Reading {
	select {
	case a := <-p.answers:
		p.stop()
		p.err, p.answers = a.err, nil
		return a.reading
	default:
		return monitor.Reading{}
	}
}

// errNotYet is the error of a pod that has not answered.
var errNotYet = errors.New("it has not answered yet")

// noteSilence says which pods have not answered.
func (o *Snapshotter) noteSilence(ctx context.Context) {
	for _, p := range o.pods {
		if errors.Is(p.err, errNotYet) {
			p.err = &Error{Reason: ReasonUnreachable, Err: ctx.Err(), Message: fmt.Sprintf("the %s %s has not answered yet", p.part.name, nameOf(&p.pod))}
		}
	}
}

// askPod asks a pod. That outlasts the sample, so that a pod that is slow is heard in a later one.
func (o *Snapshotter) askPod(ctx context.Context, p *scrapedPod) {
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	answers := make(chan answer, 1)
	p.answers = answers
	go func() {
		if p.part == nodeAgents {
			select {
			case o.turns <- struct{}{}:
				defer func() { <-o.turns }()
			case <-ctx.Done():
			}
		}
		reading, err := p.readMetrics(ctx, o.windlass)
		answers <- answer{reading, err}
		select {
		case o.arrived <- struct{}{}:
		default:
		}
	}()
}

// list finds the pods again if that is due.
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
	if p.answers != nil {
		p.stop()
		<-p.answers
		p.answers = nil
	}
	return p.hangUp()
}

func (p *scrapedPod) hangUp() error {
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
		_ = p.hangUp()
		return reading, &Error{Reason: ReasonRefused, Err: err, Message: fmt.Sprintf("the %s %s does not tell what it does: %v", p.part.name, nameOf(&p.pod), err)}
	}
	return reading, nil
}
