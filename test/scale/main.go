// Command scale measures how many instances one scheduler's provisioner can
// order, and what that costs the Kubernetes API.
//
// It runs a real kube-apiserver and etcd with as many nodes as it is told, none
// of which exists: kwok plays their kubelets. It prints lines name=value.
//
//   - decisions_per_second: instances launched, from the candidates by way of the
//     node's choice to the queue of creations, without waiting for the API. The
//     goal is 2500 or more.
//   - pod_creates_per_second: pods created, from the first order until the API has
//     answered the last; it says more about the machine than about Windlass.
//   - api_writes_per_instance: requests that write, over whole lives. The goal is
//     2 or less.
//
// Each is the median of the runs; _min and _max are their spread.
//
// With -busy it measures what Windlass writes for so many functions that are busy. The
// controller is the real one, and a scheduler tells it twice a second of each function, with
// other numbers each time. It has two loads: calls, where the instances stay as they are; and
// scaling, where their number changes each time, too. Schedulers write nothing but pods.
//
//   - api_writes_per_second_LOAD: requests that write, and of which kind. The goal is 100 or
//     less with 1,000 functions.
//   - api_bytes_per_second_LOAD: what is in them.
//   - api_writes_with_code_LOAD: how many have a function's code in them. The goal is none.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// options are the command's flags.
type options struct {
	nodes, instances, functions, runs, busy int
}

func main() {
	var o options
	flag.IntVar(&o.nodes, "nodes", 1000, "nodes of the cluster")
	flag.IntVar(&o.instances, "instances", 5000, "instances that are launched in each run")
	flag.IntVar(&o.functions, "functions", 64, "functions that they are of")
	flag.IntVar(&o.runs, "runs", 3, "runs")
	flag.IntVar(&o.busy, "busy", 0, "busy `functions` of which writes are measured, and nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	klog.SetSlogLogger(slog.New(slog.DiscardHandler))
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, o options) (err error) {
	if o.nodes < 1 || o.instances < 1 || o.functions < 1 || o.runs < 1 {
		return errors.New("all flags must be at least 1")
	}
	folder, err := programs()
	if err != nil {
		return err
	}
	if o.busy > 0 {
		return measureWrites(ctx, out, folder, o.busy)
	}
	ctx, broke := context.WithCancelCause(ctx)
	defer broke(nil)
	config, stop, err := startCluster(ctx, folder, broke)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	w, err := newScaleCluster(ctx, config, o)
	if err != nil {
		return err
	}
	results := map[string][]float64{}
	for i := range o.runs {
		slog.Info("measuring", "run", i+1)
		if err := w.measure(ctx, uint64(i+1), results); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	report(out, o, results)
	return nil
}

func report(out io.Writer, o options, results map[string][]float64) {
	fmt.Fprintf(out, "nodes=%d\ninstances=%d\nruns=%d\n", o.nodes, o.instances, o.runs)
	for _, name := range []string{"decisions_per_second", "pod_creates_per_second", "api_writes_per_instance"} {
		values := slices.Sorted(slices.Values(results[name]))
		fmt.Fprintf(out, "%s=%.4g\n%s_min=%.4g\n%s_max=%.4g\n",
			name, values[len(values)/2], name, values[0], name, values[len(values)-1])
	}
}

// programs is the folder with the programs of a cluster.
func programs() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	folder := cmp.Or(os.Getenv("WINDLASS_KUBERNETES_BIN"), filepath.Join(cache, "windlass", "kubernetes-v1.34.4"))
	if _, err := os.Stat(filepath.Join(folder, "kube-apiserver")); err != nil {
		return "", fmt.Errorf("%w: run make scale, which builds it", err)
	}
	return folder, nil
}

// startCluster starts a kube-apiserver with its etcd, and kwok.
func startCluster(ctx context.Context, folder string, broke context.CancelCauseFunc) (*rest.Config, func() error, error) {
	if _, err := os.Stat(filepath.Join(folder, "kwok")); err != nil {
		return nil, nil, fmt.Errorf("%w: run make scale, which builds it", err)
	}
	env := &envtest.Environment{BinaryAssetsDirectory: folder, ControlPlaneStartTimeout: time.Minute}
	// Nobody here would take the taint of a new node away.
	env.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "TaintNodesByCondition")
	config, err := env.Start()
	if err != nil {
		return nil, nil, errors.Join(err, env.Stop())
	}
	stopKwok, err := startKwok(ctx, filepath.Join(folder, "kwok"), env.KubeConfig, broke)
	if err != nil {
		return nil, nil, errors.Join(err, env.Stop())
	}
	return config, func() error { return errors.Join(stopKwok(), env.Stop()) }, nil
}
