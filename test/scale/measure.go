package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/kube"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
)

// epochs of the instances, so that no two runs give one a name twice.
const (
	epochsOfDecisions = 1 << 16
	epochsOfLives     = 2 << 16
)

// scheduler is as much of one as is measured.
type scheduler struct {
	*provisioner.Provisioner
	ended atomic.Int64
	// failure is why an instance did not start, of which there should be none.
	failure atomic.Pointer[string]
	// close ends it; the pods stay.
	close func()
}

// StartFailed keeps why an instance did not start.
func (s *scheduler) StartFailed(_ provisioner.Key, why provisioner.StartFailure) {
	s.failure.Store(&why.Reason)
}

// Gone counts an instance that ended.
func (s *scheduler) Owns(string) bool                                     { return true }
func (s *scheduler) Gone(provisioner.Key, bool, provisioner.StartFailure) { s.ended.Add(1) }

type noRuntimes struct{}

// Get knows no Runtime.
func (noRuntimes) Get(string) (*v1alpha1.ClusterRuntime, bool) { return nil, false }

// open starts a scheduler that creates so many pods per second.
func (w *scaleCluster) open(ctx context.Context, qps float64) (*scheduler, error) {
	agent := placement.Amount{MilliCPU: 10, Memory: 32 << 20, Pods: 1}
	runtime, err := kube.New(kube.Config{
		Pod: podspec.Config{AgentImage: "agent:1", SchedulerAddr: "scheduler:9443", AgentRequests: agent, AgentMemoryLimit: 256 << 20},
		QPS: qps, Burst: 1, Workers: 16, MaxQueue: w.options.instances,
	}, kube.Deps{Client: w.client.CoreV1(), Runtimes: noRuntimes{}, Registerer: prometheus.NewRegistry(), Log: slog.Default()})
	if err != nil {
		return nil, err
	}
	s := &scheduler{Provisioner: provisioner.New(provisioner.Config{AgentRequests: agent}, provisioner.Deps{
		Driver: runtime, Adopting: runtime, Nodes: runtime, Now: time.Now, Log: slog.Default(),
	})}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { _ = runtime.Run(ctx) })
	running.Go(func() { _ = s.Run(ctx, s) })
	s.close = func() { cancel(); running.Wait() }
	if err := until(ctx, runtime.Synced); err != nil {
		s.close()
		return nil, fmt.Errorf("the nodes are not known: %w", err)
	}
	return s, nil
}

// measure does one run.
func (w *scaleCluster) measure(ctx context.Context, run uint64, results map[string][]float64) error {
	decisions, err := w.decisions(ctx, epochsOfDecisions+run)
	if err != nil {
		return err
	}
	creates, writes, err := w.lives(ctx, epochsOfLives+run)
	if err != nil {
		return err
	}
	for name, value := range map[string]float64{
		"decisions_per_second":    decisions,
		"pod_creates_per_second":  creates,
		"api_writes_per_instance": writes,
	} {
		results[name] = append(results[name], value)
	}
	return nil
}

// decisions is how many instances are launched per second, one by one, by a
// scheduler that creates next to nothing of them.
func (w *scaleCluster) decisions(ctx context.Context, epoch uint64) (float64, error) {
	s, err := w.open(ctx, 0.001)
	if err != nil {
		return 0, err
	}
	defer s.close()
	begin := time.Now()
	keys, err := w.order(s, epoch)
	taken := time.Since(begin)
	for _, key := range keys {
		s.End(key, provisioner.Ending{})
	}
	if err := w.await(ctx, s, err); err != nil {
		return 0, err
	}
	return float64(w.options.instances) / taken.Seconds(), nil
}

// lives is how many pods are created per second, and how many requests that
// write an instance costs from its creation to its end.
func (w *scaleCluster) lives(ctx context.Context, epoch uint64) (creates, writes float64, err error) {
	s, err := w.open(ctx, 1e6)
	if err != nil {
		return 0, 0, err
	}
	defer s.close()
	instances := w.options.instances
	writesBefore, createdBefore := w.writes.writes.Load(), w.writes.created.Load()
	begin := time.Now()
	keys, err := w.order(s, epoch)
	if err == nil {
		err = until(ctx, func() bool {
			return s.failure.Load() != nil || w.writes.created.Load()-createdBefore >= int64(instances)
		})
	}
	taken := time.Since(begin)
	for _, key := range keys {
		s.End(key, provisioner.Ending{})
	}
	if err := w.await(ctx, s, err); err != nil {
		return 0, 0, err
	}
	n := float64(instances)
	return n / taken.Seconds(), float64(w.writes.writes.Load()-writesBefore) / n, nil
}

// order orders all instances, function by function.
func (w *scaleCluster) order(s *scheduler, epoch uint64) ([]provisioner.Key, error) {
	keys := make([]provisioner.Key, 0, w.options.instances)
	for i := range w.options.instances {
		fn := w.functions[i%len(w.functions)]
		site, want := placement.NewSite(s.Candidates(fn)), s.Requests(fn)
		launched := s.LaunchOn(fn, invocation.Term{Epoch: epoch}, 1, func() (string, bool) { return site.Pick(want, rand.IntN) })
		if len(launched) != 1 {
			return keys, fmt.Errorf("instance %d cannot be launched: %s", i, site.Explain(want))
		}
		keys = append(keys, launched...)
	}
	return keys, nil
}

// await waits for the end of all instances, unless there was an error.
func (w *scaleCluster) await(ctx context.Context, s *scheduler, err error) error {
	if err == nil {
		err = until(ctx, func() bool { return s.failure.Load() != nil || s.ended.Load() >= int64(w.options.instances) })
	}
	if why := s.failure.Load(); why != nil {
		return fmt.Errorf("an instance did not start: %s", *why)
	}
	return err
}

// until waits for what should come.
func until(ctx context.Context, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return sleep.Until(ctx, 5*time.Millisecond, func() (bool, error) { return done(), nil })
}
