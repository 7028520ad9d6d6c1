package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wellknown"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

const (
	// warmInstances and warmClients are those of the benchmark without a cluster.
	warmInstances = 8
	warmClients   = 32
	// warmSettle is how long calls go on before they are counted.
	warmSettle = 10 * time.Second
)

// measureWarm measures the CPU time of warm calls.
func measureWarm(ctx context.Context, w cluster, o options, out io.Writer) (err error) {
	fn, err := w.Create(ctx, "warm", v1alpha1.FunctionSpec{
		Template: v1alpha1.FunctionTemplate{Image: o.image, Args: []string{"httpd"}},
		Scaling:  v1alpha1.Scaling{MinInstances: warmInstances, MaxInstances: new(int32(warmInstances))},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Delete(ctx, fn)) }()
	if err := w.awaitInstances(ctx, fn, warmInstances); err != nil {
		return err
	}
	calls := newCaller(w.url(fn, "/version"), warmClients)
	defer calls.close()
	counts, stop := calls.closed(ctx, warmClients)
	defer stop()
	sleep.For(ctx, warmSettle)
	before, err := w.usage(ctx, o.release, fn)
	if err != nil {
		return err
	}
	answered, failed, from := counts.answered.Load(), counts.failed.Load(), time.Now()
	sleep.For(ctx, o.length)
	length := time.Since(from)
	answered, failed = counts.answered.Load()-answered, counts.failed.Load()-failed
	after, err := w.usage(ctx, o.release, fn)
	if err != nil {
		return err
	}
	if answered == 0 {
		return errors.New("no call was answered")
	}
	reportWarm(out, float64(answered)/length.Seconds(), failed, cores(before, after))
	return nil
}

// container is a container whose CPU time counts for a call, and role what its program is.
type container struct{ role, namespace, pod, name string }

// cpuTime is what a container had used at a time.
type cpuTime struct {
	at   time.Time
	used time.Duration
}

// cores is how many cores the containers of each role have used on average. One that was not
// there at both times does not count.
func cores(before, after map[container]cpuTime) map[string]float64 {
	all := map[string]float64{}
	for c, then := range before {
		if now, there := after[c]; there && now.at.After(then.at) {
			all[c.role] += float64(now.used-then.used) / float64(now.at.Sub(then.at))
		}
	}
	return all
}

// summary is what is used of a kubelet's statistics.
type summary struct {
	Pods []struct {
		PodRef     struct{ Name, Namespace string }
		Containers []struct {
			Name string
			CPU  *struct {
				Time                 metav1.Time
				UsageCoreNanoSeconds *int64
			}
		}
	}
}

// usage asks all kubelets about the gateways and schedulers of a release, and about the agents and
// functions of a function's instances.
func (w cluster) usage(ctx context.Context, release string, fn *v1alpha1.Function) (map[container]cpuTime, error) {
	nodes, err := w.readyNodes(ctx)
	if err != nil {
		return nil, err
	}
	roles, err := w.roles(ctx, release, fn)
	if err != nil {
		return nil, err
	}
	all := map[container]cpuTime{}
	for _, node := range nodes {
		text, err := w.Core.CoreV1().RESTClient().Get().Resource("nodes").Name(node.Name).SubResource("proxy").Suffix("stats/summary").Param("only_cpu_and_memory", "true").DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("statistics of the node %s: %w", node.Name, err)
		}
		var s summary
		if err := json.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("statistics of the node %s: %w", node.Name, err)
		}
		for _, pod := range s.Pods {
			for _, c := range pod.Containers {
				role := roles[pod.PodRef.Namespace+"/"+pod.PodRef.Name]
				if role == "function" && c.Name == podspec.ContainerAgent {
					role = "agent"
				}
				if role != "" && c.CPU != nil && c.CPU.UsageCoreNanoSeconds != nil {
					all[container{role, pod.PodRef.Namespace, pod.PodRef.Name, c.Name}] = cpuTime{c.CPU.Time.Time, time.Duration(*c.CPU.UsageCoreNanoSeconds)}
				}
			}
		}
	}
	return all, nil
}

// roles says what the pods are that serve a function, by their namespaces and names.
func (w cluster) roles(ctx context.Context, release string, fn *v1alpha1.Function) (map[string]string, error) {
	all := map[string]string{}
	for _, of := range []struct{ role, namespace, selector string }{
		{"gateway", release, "app.kubernetes.io/component=gateway"},
		{"scheduler", release, "app.kubernetes.io/component=scheduler"},
		{"function", w.Namespace, wellknown.LabelFunction + "=" + fn.Name},
	} {
		pods, err := w.Core.CoreV1().Pods(of.namespace).List(ctx, metav1.ListOptions{LabelSelector: of.selector})
		if err != nil {
			return nil, err
		}
		if len(pods.Items) == 0 {
			return nil, fmt.Errorf("the namespace %s has no pod with %s", of.namespace, of.selector)
		}
		for i := range pods.Items {
			all[of.namespace+"/"+pods.Items[i].Name] = of.role
		}
	}
	return all, nil
}
