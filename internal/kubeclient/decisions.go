package kubeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/windlass-dev/windlass/pkg/autoscaler/decisionlog"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

const (
	// requestTimeout is how long one scheduler may take to answer.
	requestTimeout = 5 * time.Second
	// maxAccount is the longest answer in bytes.
	maxAccount = 1 << 20
)

// DecisionGetter asks schedulers about their decisions. It keeps its connections open until it
// is closed. It is for one goroutine.
type DecisionGetter struct {
	pods      *components
	namespace string
	// tunnels are by their pods' names, as namespace/name.
	tunnels map[string]*Tunnel
	// owner is the pod that was the one to ask last time, or nil.
	owner *corev1.Pod
}

// DecisionGetter asks the schedulers of a namespace or, if that is empty, of any. It
// connects to nothing yet. Close must be called on it.
func (c *components) DecisionGetter(namespace string) *DecisionGetter {
	return &DecisionGetter{pods: c, namespace: namespace, tunnels: make(map[string]*Tunnel)}
}

// Close ends all connections.
func (h *DecisionGetter) Close() error {
	var errs []error
	for pod, tunnel := range h.tunnels {
		errs = append(errs, tunnel.Close())
		delete(h.tunnels, pod)
	}
	return errors.Join(errs...)
}

// Decisions returns the last decisions on a function. It asks one scheduler after the other
// until it finds the one that decides on it; others name that one.
func (h *DecisionGetter) Decisions(ctx context.Context, key invocation.FunctionKey) (decisionlog.Report, error) {
	if h.owner != nil {
		if account, err := h.fetchFrom(ctx, h.owner, key); err == nil && account.Served {
			return account, nil
		}
		h.owner = nil
	}
	pods, all, err := h.pods.readyPods(ctx, schedulers, h.namespace)
	if err != nil {
		return decisionlog.Report{}, err
	}
	if len(pods) == 0 {
		return decisionlog.Report{}, &Error{Reason: ReasonNoPod, Message: h.pods.noneReady(schedulers, h.namespace, all)}
	}
	owner := ""
	var failed error
	for len(pods) > 0 {
		i := max(0, slices.IndexFunc(pods, func(pod corev1.Pod) bool { return nameOf(&pod) == owner }))
		pod := pods[i]
		pods = slices.Delete(pods, i, i+1)
		account, err := h.fetchFrom(ctx, &pod, key)
		switch {
		case err == nil && account.Served:
			h.owner = &pod
			return account, nil
		case err == nil && account.Owner != "":
			owner = pod.Namespace + "/" + account.Owner
		case Is(err, ReasonForbidden), ctx.Err() != nil:
			return decisionlog.Report{}, err
		case err != nil:
			failed = err
		}
	}
	if failed != nil {
		return decisionlog.Report{}, failed
	}
	return decisionlog.Report{}, &Error{Reason: ReasonNoPod, Message: fmt.Sprintf(
		"no scheduler decides on function %s at the moment, since its slot changes hands: try again in a second", key)}
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// fetchFrom asks one scheduler.
func (h *DecisionGetter) fetchFrom(ctx context.Context, pod *corev1.Pod, key invocation.FunctionKey) (account decisionlog.Report, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	tunnel := h.tunnels[nameOf(pod)]
	if tunnel == nil {
		if tunnel, err = h.pods.openTunnel(ctx, pod, schedulers); err != nil {
			return account, err
		}
		h.tunnels[nameOf(pod)] = tunnel
	}
	account, err = fetchDecisions(ctx, tunnel, key)
	if err != nil {
		// What broke does not come back; another try dials again.
		delete(h.tunnels, nameOf(pod))
		_ = tunnel.Close()
		return account, &Error{Reason: ReasonRefused, Err: err, Message: fmt.Sprintf("the scheduler %s does not tell what it decided: %v; see its log with kubectl -n %s logs %s",
			tunnel.Pod, err, pod.Namespace, pod.Name)}
	}
	return account, nil
}

// fetchDecisions asks the scheduler at the other end of a tunnel.
func fetchDecisions(ctx context.Context, tunnel *Tunnel, key invocation.FunctionKey) (account decisionlog.Report, err error) {
	path := "/debug/decisions/" + url.PathEscape(key.Namespace) + "/" + url.PathEscape(key.Name)
	return account, fetch(ctx, tunnel, path, maxAccount, &account)
}

// fetch reads JSON of bounded size from the operations port at the other end of a tunnel.
func fetch(ctx context.Context, tunnel *Tunnel, path string, most int64, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, operations+path, nil)
	if err != nil {
		return err
	}
	response, err := tunnel.transport().RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("it answered %s: %s", response.Status, strings.TrimSpace(string(text)))
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("its answer cannot be read: %w: check that it and this command have the same version", err)
	}
	return nil
}

// operations stands in URLs for the port at the other end of a tunnel.
const operations = "http://operations.windlass"

// transport leads to the other end. It keeps no connection, so that none is left when
// the tunnel is closed.
func (t *Tunnel) transport() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, DialContext: t.Dial}
}
