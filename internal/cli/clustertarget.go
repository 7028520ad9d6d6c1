package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/kubeclient"
	"github.com/windlass-dev/windlass/internal/localapi"
	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// clusterFlags say which cluster, and what to do there.
type clusterFlags struct {
	context, kubeconfig string
	// windlassNamespace is where the gateways are; empty means anywhere.
	windlassNamespace string
	forceConflicts    bool
}

// maxEvents is how many Events describe shows.
const maxEvents = 10

// cluster is the Windlass of a kubeconfig's context.
func (f *finder) cluster() (*target, error) {
	access, err := f.access()
	if err != nil {
		return nil, err
	}
	client, err := f.connect(access)
	if err != nil {
		return nil, err
	}
	return clusterTarget(client, access, &f.flags, f.Err), nil
}

// access reads the kubeconfig that flags, environment and settings name.
func (f *finder) access() (*kubeclient.Access, error) {
	return kubeclient.Load(kubeclient.Config{
		Kubeconfig: f.flags.kubeconfig, Files: f.kubeconfigFiles(), Context: cmp.Or(f.flags.context, f.settingsContext),
	})
}

func clusterTarget(client *kubeclient.Client, access *kubeclient.Access, flags *clusterFlags, notes io.Writer) *target {
	c := &clusterWindlass{Client: client, flags: flags, notes: notes}
	return &target{registry: c, editor: c, logReader: c, callLookup: c, router: c, decisionSource: c, snapshotSource: c, keyStore: c, pods: c, context: access.Context,
		namespace: cmp.Or(access.Namespace, v1alpha1.DefaultNamespace)}
}

// kubeconfigFiles are where kubectl looks.
func (h *host) kubeconfigFiles() []string {
	if list := h.getenv("KUBECONFIG"); list != "" {
		return filepath.SplitList(list)
	}
	if home := h.getenv("HOME"); home != "" {
		return []string{filepath.Join(home, ".kube", "config")}
	}
	return nil
}

// clusterWindlass is what the API server of a cluster offers.
type clusterWindlass struct {
	*kubeclient.Client
	flags *clusterFlags
	// notes is for what the user should know beside the result.
	notes io.Writer
}

func (c *clusterWindlass) Prepare(fn *v1alpha1.Function) (apply, error) {
	change, err := kubeclient.Prepare(fn)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, dryRun bool) (localapi.Applied, error) {
		applied, err := c.Apply(ctx, change, kubeclient.Options{Force: c.flags.forceConflicts, DryRun: dryRun})
		if applied.Note != "" {
			fmt.Fprintln(c.notes, "note:", printable(applied.Note))
		}
		return asLocal(applied, err)
	}, nil
}

func (c *clusterWindlass) Change(ctx context.Context, key invocation.FunctionKey, edit func(*v1alpha1.Function) error, dryRun bool) (localapi.Applied, error) {
	return asLocal(c.Client.Change(ctx, key, edit, kubeclient.Options{DryRun: dryRun}))
}

// asLocal converts the result of a cluster into that of a local Windlass.
func asLocal(applied kubeclient.Applied, err error) (localapi.Applied, error) {
	return localapi.Applied{Result: file.Result(applied.Result), Function: applied.Function, Before: applied.Before}, err
}

func (c *clusterWindlass) Log(ctx context.Context, r logRequest) error {
	return c.Logs(ctx, kubeclient.LogRequest{Key: r.key, Follow: r.follow, Tail: r.tail, Since: r.since, Timestamps: r.timestamps, Agent: r.agent, Out: r.out, Notes: r.notes})
}

func (c *clusterWindlass) LookUpCall(ctx context.Context, id invocation.ID) (invocation.Findings, error) {
	return c.Client.LookUpCall(ctx, c.flags.windlassNamespace, id)
}

func (c *clusterWindlass) Events(ctx context.Context, fn *v1alpha1.Function) ([]kubeclient.Event, error) {
	return c.Client.Events(ctx, fn, maxEvents)
}

// Route leads through the API server, which reaches pods that this machine
// does not.
func (c *clusterWindlass) Route(ctx context.Context, fn *v1alpha1.Function) (*route, error) {
	ctx, cancel := context.WithTimeout(ctx, routeTimeout)
	defer cancel()
	tunnel, err := c.OpenTunnel(ctx, c.flags.windlassNamespace)
	if err != nil {
		return nil, err
	}
	return &route{url: gatewayURL("http://"+tunnelHost, fn.Key()), dial: tunnel.Dial, close: tunnel.Close,
		hint: "look at the gateway's pod " + tunnel.Pod}, nil
}

// DecisionGetter asks the schedulers through the API server.
func (c *clusterWindlass) DecisionGetter() decisionGetter {
	return c.Client.DecisionGetter(c.flags.windlassNamespace)
}

// Snapshotter asks gateways and schedulers through the API server.
func (c *clusterWindlass) Snapshotter(now func() time.Time) snapshotter {
	return c.Client.Snapshotter(c.flags.windlassNamespace, now)
}

func (c *clusterWindlass) ReadKeys(ctx context.Context) ([]byte, error) {
	return c.Keys(ctx, c.flags.windlassNamespace)
}

func (c *clusterWindlass) EditKeys(ctx context.Context, edit func([]byte) ([]byte, error)) error {
	return c.Client.EditKeys(ctx, c.flags.windlassNamespace, edit)
}

const (
	// tunnelHost stands in the URL of what a tunnel leads to.
	tunnelHost = "gateway.windlass"
	// routeTimeout bounds the search for a gateway.
	routeTimeout = 30 * time.Second
)
