package cli

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/internal/monitor/terminal"
	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// registry knows the functions.
type registry interface {
	// List returns the functions of a namespace, or all if it is empty.
	List(ctx context.Context, namespace string) (*v1alpha1.FunctionList, error)
	Get(ctx context.Context, key invocation.FunctionKey) (*v1alpha1.Function, error)
	// Revisions returns the revisions of a function, oldest first.
	Revisions(ctx context.Context, fn *v1alpha1.Function) ([]v1alpha1.FunctionRevision, error)
}

// editor changes functions.
type editor interface {
	// Prepare validates a function before anything is sent. Its result applies the function.
	Prepare(fn *v1alpha1.Function) (apply, error)
	// Change changes fields of an existing function. It may call edit again after a concurrent
	// change. A dry run returns the result without making the change.
	Change(ctx context.Context, key invocation.FunctionKey, edit func(*v1alpha1.Function) error, dryRun bool) (localapi.Applied, error)
	Delete(ctx context.Context, key invocation.FunctionKey) error
}

// apply creates or changes a function. A dry run returns the result without making the change.
type apply func(ctx context.Context, dryRun bool) (localapi.Applied, error)

// logReader copies logs.
type logReader interface {
	Log(ctx context.Context, request logRequest) error
}

// callLookup collects the log of one invocation.
type callLookup interface {
	LookUpCall(ctx context.Context, id invocation.ID) (invocation.Findings, error)
}

type logRequest struct {
	key    invocation.FunctionKey
	follow bool
	// tail lines of all instances together, or all if it is negative.
	tail int
	// since is when the first line was written at the earliest; zero for any time.
	since time.Time
	// timestamps puts its time before each line.
	timestamps bool
	// agent means the log of the agents, if there is one.
	agent      bool
	out, notes io.Writer
}

// router finds the way to where functions are called.
type router interface {
	Route(ctx context.Context, fn *v1alpha1.Function) (*route, error)
}

// route leads to a function.
type route struct {
	// url is the function's, without a slash at its end.
	url string
	// dial replaces the usual way of connecting to url, unless it is nil.
	dial dialer
	// hint is what to look at if nothing answers there.
	hint string
	// key is an API key that counts there, or empty.
	key   string
	close func() error
}

// dialer connects to an address.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// dialNoting connects, and sets made once a connection is up, before anything can be sent over
// it.
func (r *route) dialNoting(made *atomic.Bool) dialer {
	dial := r.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err == nil {
			made.Store(true)
		}
		return conn, err
	}
}

// podLister lists the pods and Events of a function.
type podLister interface {
	Pods(ctx context.Context, fn *v1alpha1.Function) ([]kubeclient.Pod, error)
	Events(ctx context.Context, fn *v1alpha1.Function) ([]kubeclient.Event, error)
}

// decisionSource opens a decisionGetter.
type decisionSource interface {
	DecisionGetter() decisionGetter
}

// decisionGetter gets the last decisions on a function from its scheduler. It may keep
// connections until it is closed.
type decisionGetter interface {
	Decisions(ctx context.Context, key invocation.FunctionKey) (decisionlog.Report, error)
	Close() error
}

// snapshotSource opens a snapshotter.
type snapshotSource interface {
	Snapshotter(now func() time.Time) snapshotter
}

// snapshotter takes samples of the metrics of all gateways and schedulers. It may keep
// connections until it is closed.
type snapshotter interface {
	terminal.Source
	Close() error
}

// keyStore has the list of API keys.
type keyStore interface {
	// ReadKeys returns the list; empty if it does not exist.
	ReadKeys(ctx context.Context) ([]byte, error)
	// EditKeys replaces the list by the result of edit. It may call edit again after a
	// concurrent change.
	EditKeys(ctx context.Context, edit func([]byte) ([]byte, error)) error
}

// target is the Windlass that a verb is about.
type target struct {
	registry
	editor
	logReader
	callLookup
	router
	decisionSource
	snapshotSource
	keyStore
	// pods is nil for a local Windlass, which has none.
	pods podLister
	// context names the cluster, and is empty for a local Windlass.
	context string
	// namespace is that of functions which are named without one.
	namespace string
}

func (t *target) inCluster() bool { return t.context != "" }

// key puts a function that was named without a namespace into the target's.
func (t *target) key(key invocation.FunctionKey) invocation.FunctionKey {
	if key.Namespace == "" {
		key.Namespace = t.namespace
	}
	return key
}

// clusterOnly refuses flags that mean something in a cluster only.
func (t *target) clusterOnly(flag string, given bool) error {
	if !given || t.inCluster() {
		return nil
	}
	return usagef("--%s is for a cluster, and this is a Windlass on this machine; remove it, or name the cluster with --context", flag)
}
