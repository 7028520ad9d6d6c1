package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/cluster/role"
	"github.com/windlass-dev/windlass/internal/lifecycle"
	"github.com/windlass-dev/windlass/internal/metric/exposition"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/podtoken"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/internal/tracing"
	catalogkube "github.com/windlass-dev/windlass/pkg/catalog/kube"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/ownership/etcd"
	"github.com/windlass-dev/windlass/pkg/ownership/health"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/kube"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/provisioner/podspec"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// settleTime is how long a scheduler that starts waits for others that do, so
// that they share the slots from the start. A pod is ready some hundred
// milliseconds after another that was created with it.
const settleTime = 500 * time.Millisecond

// Scheduler runs a scheduler until ctx ends and others have its slots.
func Scheduler(ctx context.Context, config SchedulerConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	registry := role.NewRegistry()
	log, flush := newLog(config.Common, registry)
	defer flush()
	s := &schedulerRole{config: config, log: log, registry: registry, parts: lifecycle.New(), keeping: lifecycle.New()}
	s.state.Set(role.Starting)
	defer s.parts.Stop()
	defer s.keeping.Stop()
	if err := s.start(ctx); err != nil {
		return role.UnlessDone(ctx, err)
	}
	s.state.Set("")
	s.log.Info("ready", "id", config.ID, "advertise", config.Advertise)
	err := role.UntilDone(ctx, s.parts)
	if err == nil {
		s.state.Set("stopping")
		s.log.Info("handing the slots over", "delay", config.HandoverDelay)
		s.keeping.Stop()
		s.scheduler.Serving(false)
		s.scheduler.RemoveSpares()
		s.scheduler.Resync()
		time.Sleep(config.HandoverDelay)
	}
	return err
}

// schedulerRole is a scheduler with its parts.
type schedulerRole struct {
	config   SchedulerConfig
	log      *slog.Logger
	registry *exposition.Registry
	state    role.Readiness
	// parts are all but what keeps the slots, which stops before them.
	parts, keeping *lifecycle.Lifecycle

	tls       *mtls.Credentials
	traces    *tracing.Tracer
	source    *catalogkube.Source
	pods      *kube.Driver
	verifier  *podtoken.Verifier
	instances *provisioner.Provisioner
	scheduler *scheduler.Scheduler
}

// start makes the parts and starts them in the order in which they need each other. Slots are
// claimed last: an owner must know its functions and their instances.
func (s *schedulerRole) start(ctx context.Context) (err error) {
	if err := role.ServeOperations(s.parts, s.config.Common, s.operations(), s.log); err != nil {
		return err
	}
	if s.tls, err = mtls.Load(s.config.TLSDir, s.log); err != nil {
		return fmt.Errorf("--tls-dir: %w", err)
	}
	role.RegisterExpiry(s.registry, s.tls)
	if s.traces, err = startTraces(s.parts, s.config.Tracing, "windlass-scheduler", s.registry, s.log); err != nil {
		return err
	}
	// 1. Which functions and which pods there are.
	if s.source, err = startCatalog(s.parts, s.config.Common, catalogkube.Config{Runtimes: true, Code: true}, s.log); err != nil {
		return err
	}
	if err := s.startPods(); err != nil {
		return err
	}
	if err := waitAll(ctx, s.parts, s.source.Synced(), poll(ctx, s.pods.Synced)); err != nil {
		return err
	}
	// 2. Who owns which slot, and the scheduler, which others can reach.
	keeper, directory, memory, err := s.newOwnership()
	if err != nil {
		return err
	}
	watched, err := health.New(health.Config{Self: s.config.ID}, health.Deps{
		Directory: directory, Credentials: s.tls.ClientCredentials(s.config.Domain().Scheduler()), Registry: s.registry, Log: s.log,
	})
	if err != nil {
		return err
	}
	if err := s.startScheduler(keeper, watched, memory); err != nil {
		return err
	}
	s.parts.Start("slot directory", directory.Run)
	s.parts.Start("peers", watched.Run)
	// The estimates of a function are read when its slot comes.
	s.parts.Start("memory", memory.Run)
	if err := waitAll(ctx, s.parts, memory.Ready()); err != nil {
		return err
	}
	s.keeping.Start("slot keeper", keeper.Run)
	s.keeping.Start("estimates", func(ctx context.Context) error { return memory.WriteUntil(ctx, keeper, s.scheduler.Estimates) })
	if err := waitAll(ctx, s.parts, keeper.Ready(), directory.Ready()); err != nil {
		return err
	}
	s.scheduler.Serving(true)
	return nil
}

// startPods follows pods and nodes, and what proves a pod's identity.
func (s *schedulerRole) startPods() error {
	config, err := restConfig()
	if err != nil {
		return err
	}
	// Both share the configuration's connections.
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return err
	}
	reviews, err := authenticationv1.NewForConfig(config)
	if err != nil {
		return err
	}
	s.pods, err = kube.New(kube.Config{
		Pod: podspec.Config{
			AgentImage: s.config.AgentImage, AgentRequests: s.agentRequests(), AgentMemoryLimit: s.agentMemoryLimit(),
			UserNamespaces: s.config.UserNamespaces, UserIDs: s.config.UserIDs,
			SchedulerAddr: s.config.AgentScheduler, OwnerAddr: s.config.Advertise, TLSDomain: s.config.TLSDomain,
			NodeAddr: s.config.NodeAgent, NodeTokenAudience: podtoken.NodeAudience,
			PullPolicy: corev1.PullPolicy(s.config.ImagePullPolicy), TokenAudience: podtoken.Audience,
		},
		QPS: s.config.CreateQPS, Burst: s.createBurst(),
	}, kube.Deps{Client: client, Runtimes: s.source, CA: s.tls.CA, Registerer: s.registry, Log: s.log})
	if err != nil {
		return err
	}
	s.verifier, err = podtoken.New(podtoken.DefaultConfig(), podtoken.Deps{
		Keys:     podtoken.ClusterKeys{Client: client.RESTClient()},
		Reviewer: podtoken.ClusterReviews{Client: reviews.TokenReviews()},
		Known:    s.runs,
		Log:      s.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	s.parts.Start("pods", s.pods.Run)
	s.parts.Start("identity", s.verifier.Run)
	return nil
}

// runs says whether a pod is an instance that was started or adopted here.
func (s *schedulerRole) runs(podUID, namespace, name string) bool {
	functionUID, _, known := s.pods.Identify(podUID, namespace, name)
	return known && functionUID != ""
}

// createBurst is how many pods may be created at once, at least 2.
func (s *schedulerRole) createBurst() int { return max(2, int(2*s.config.CreateQPS)) }

func (s *schedulerRole) agentRequests() placement.Amount {
	cpu, memory := resource.MustParse(s.config.AgentCPU), resource.MustParse(s.config.AgentMemory)
	return placement.Amount{MilliCPU: cpu.MilliValue(), Memory: memory.Value(), Pods: 1}
}

func (s *schedulerRole) agentMemoryLimit() int64 {
	limit := resource.MustParse(s.config.AgentMemoryLimit)
	return limit.Value()
}

// identify says which instance the pod is that a token is of; none if it is not one
// that this scheduler looks after.
func (s *schedulerRole) identify(token string) (provisioner.Key, error) {
	key, _, err := s.podOf(token)
	if err == nil && key == (provisioner.Key{}) {
		return key, provisioner.ErrUnknownInstance
	}
	return key, err
}

// verify checks that a token is of the pod that is the instance.
func (s *schedulerRole) verify(key provisioner.Key, token string) error {
	of, pod, err := s.podOf(token)
	if err == nil && of != key {
		return fmt.Errorf("%w: the token is of pod %s, which is not that instance", provisioner.ErrBadToken, pod)
	}
	return err
}

func (s *schedulerRole) podOf(token string) (key provisioner.Key, pod string, err error) {
	identity, err := s.verifier.Verify(token)
	switch {
	case errors.Is(err, podtoken.ErrInvalid):
		return key, "", fmt.Errorf("%w: %w", provisioner.ErrBadToken, err)
	case err != nil:
		return key, "", err
	}
	pod = identity.Namespace + "/" + identity.PodName
	uid, cid, known := s.pods.Identify(identity.PodUID, identity.Namespace, identity.PodName)
	if !known {
		return key, pod, fmt.Errorf("pod %s has not been seen yet", pod)
	}
	return provisioner.Key{FunctionUID: uid, CID: cid}, pod, nil
}

func (s *schedulerRole) newOwnership() (*etcd.Coordinator, *etcd.Directory, *etcd.EstimateStore, error) {
	client, err := newEtcd(s.config.Etcd, s.log)
	if err != nil {
		return nil, nil, nil, err
	}
	s.parts.OnStop(func() { _ = client.Close() })
	// The keeper runs only once there is a scheduler.
	busy := func(slot ownership.Slot) bool { return s.scheduler.Busy(slot) }
	deps := etcd.Deps{Client: client, Busy: busy, Log: s.log}
	directory, err := etcd.NewDirectory(s.config.Etcd.Prefix, deps)
	if err != nil {
		return nil, nil, nil, err
	}
	deps.ReportedOwner = directory.Owner
	keeper, err := etcd.NewCoordinator(etcd.Config{
		ID: s.config.ID, Addr: s.config.Advertise, Prefix: s.config.Etcd.Prefix, TTL: s.config.LeaseTTL,
		Settle: settleTime,
	}, deps)
	if err != nil {
		return nil, nil, nil, err
	}
	memory, err := etcd.NewEstimateStore(s.config.Etcd.Prefix, deps)
	return keeper, directory, memory, err
}

// isScheduler tells whether a call is another scheduler's, by its certificate.
func (s *schedulerRole) isScheduler(ctx context.Context) bool {
	names, _ := mtls.PeerName(ctx)
	return slices.Contains(names, s.config.Domain().Scheduler())
}

// startScheduler starts the scheduler and lets others reach it.
func (s *schedulerRole) startScheduler(keeper *etcd.Coordinator, watched *health.Peers, memory *etcd.EstimateStore) (err error) {
	s.instances = provisioner.New(
		provisioner.Config{AgentRequests: s.agentRequests()},
		provisioner.Deps{
			Driver: s.pods, Adopting: s.pods, Nodes: s.pods, Assigner: s.pods, StartObserver: s.pods, Lister: s.pods, Drift: s.pods,
			Verify: s.verify, Identify: s.identify, Now: time.Now, Log: s.log,
		},
	)
	settings := scheduler.DefaultConfig()
	settings.ID, settings.Decider = s.config.ID, s.config.Decider
	settings.CreateRate, settings.CreateBurst = s.config.CreateQPS, s.createBurst()
	s.scheduler, err = scheduler.New(settings, scheduler.Deps{
		Catalog: s.source.Catalog(), Estimates: memory, Runtimes: s.source,
		Ownership: keeper, Router: watched, Instances: s.instances,
		Schedulers: s.tls.ClientCredentials(s.config.Domain().Scheduler()), IsScheduler: s.isScheduler,
		Registry: s.registry, Traces: s.traces, Log: s.log, Now: time.Now,
	})
	if err != nil {
		return err
	}
	watched.SetExchange(s.scheduler)
	listener, err := net.Listen("tcp", s.config.WireListen)
	if err != nil {
		return fmt.Errorf("--wire-listen: %w", err)
	}
	server := serve.NewWire(s.registry, s.tls.ServerCredentials(), mtls.RequirePeer(mtls.SchedulerMethods(s.config.Domain()))...)
	agentwire.RegisterInstancesServer(server, s.scheduler)
	controlwire.RegisterSchedulerServer(server, s.scheduler)
	s.parts.Start("provisioner", func(ctx context.Context) error { return s.instances.Run(ctx, s.scheduler) })
	s.parts.Start("scheduler", s.scheduler.Run)
	s.parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, listener, server) })
	return nil
}
