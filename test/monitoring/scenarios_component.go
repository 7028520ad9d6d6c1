package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/api/wire"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/test/lab"
)

// componentScenarios are alerts of gateways, schedulers and a node agent.
func componentScenarios() []scenario {
	return []scenario{
		{alert: "WindlassGatewaySaturated", function: "held", cause: gatewaysAreFull},
		{alert: "WindlassClaimRefusals", cause: claimsOfOthers},
		{alert: "WindlassTickLag", cause: schedulerStutters},
		{alert: "WindlassOwnershipUnconfirmed", cause: withoutEtcd},
		{alert: "WindlassOwnershipFlapping", cause: schedulersRestart},
		{alert: "WindlassCertificateExpiry", cause: certificatesEnd},
		{alert: "WindlassClusterUnavailable", function: "unreplaced", cause: withoutAPI},
		{alert: "WindlassNodeAgentFailOpen", cause: nodeAgentStutters},
		{alert: "WindlassAbsent", cause: controllerIsGone, says: "controller"},
	}
}

// controllerIsGone kills the only controller.
func controllerIsGone(ctx context.Context, w *harness, _ string) (undo func() error, err error) {
	w.Controller.Kill()
	return func() error { return w.Controller.Revive(ctx) }, nil
}

// certificatesEnd gives gateways a certificate that nobody has renewed in time.
func certificatesEnd(_ context.Context, w *harness, _ string) (undo func() error, err error) {
	return func() error { return w.Certify("gateway", 0) }, w.Certify("gateway", 10*24*time.Hour)
}

// gatewaysAreFull has calls that take long fill the gateways.
func gatewaysAreFull(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	return w.called(ctx, function, "ms=9000", 2*gatewayHolds, func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MaxInstances = new(int32(1)) })
}

// claimsOfOthers claims calls that nobody has handed out, as an instance whose
// tickets are out of date does, and offers calls as only gateways may.
func claimsOfOthers(ctx context.Context, w *harness, _ string) (undo func() error, err error) {
	ca, err := os.ReadFile(filepath.Join(w.Config.TLSDir("gateway"), "ca.crt"))
	if err != nil {
		return nil, err
	}
	calls, err := mtls.AgentCalls(ca, lab.Domain.Gateway())
	if err != nil {
		return nil, err
	}
	asAgent, err := mtls.AgentCredentials(ca, lab.Domain.Scheduler())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		offerAsStranger(ctx, w.WireAddr(w.Schedulers[0]), asAgent)
		for ctx.Err() == nil {
			// A gateway bounds how often one connection may be refused.
			claimNothing(ctx, w.WireAddr(w.Gateways[0]), calls)
		}
	}()
	return func() error {
		cancel()
		<-ended
		return nil
	}, nil
}

// offerAsStranger opens a stream of offers without a gateway's certificate, which is
// refused.
func offerAsStranger(ctx context.Context, scheduler string, asAgent credentials.TransportCredentials) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(scheduler, grpc.WithTransportCredentials(asAgent))
	if err != nil {
		return
	}
	defer conn.Close()
	if stream, err := controlwire.NewSchedulerClient(conn).Offer(ctx); err == nil {
		_, _ = stream.Recv()
	}
}

// claimNothing claims ten calls that do not exist, on one connection.
func claimNothing(ctx context.Context, gateway string, calls *tls.Config) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: calls}
	raw, err := dialer.DialContext(ctx, "tcp", gateway)
	if err != nil {
		sleep.For(ctx, 500*time.Millisecond)
		return
	}
	conn := callwire.NewConn(raw, nil)
	defer context.AfterFunc(ctx, conn.Close)()
	defer conn.Close()
	hello := callwire.Hello{CID: "00000001-000001", ProtocolMin: wire.AgentProtocols.Min, ProtocolMax: wire.AgentProtocols.Max}
	conn.Commit(hello.Append(conn.Begin()))
	for n := range uint32(10) {
		if _, err := conn.Read(); err != nil { // a welcome, or a refusal
			return
		}
		var claim callwire.Claim
		_, _ = rand.Read(claim.Invocation[:])
		_, _ = rand.Read(claim.Token[:])
		conn.Commit(callwire.AppendClaim(conn.Begin(), 2*n+1, claim))
		sleep.For(ctx, 50*time.Millisecond)
	}
}

// schedulerStutters lets a scheduler run only for a third of the time, as a limit
// on its CPU does, in pieces that are longer.
func schedulerStutters(ctx context.Context, w *harness, _ string) (undo func() error, err error) {
	goOn := stutter(ctx, w.Schedulers[0].Process().Signal, 700*time.Millisecond, 350*time.Millisecond)
	return func() error {
		goOn()
		return nil
	}, nil
}

// stutter stops a process again and again for a time, and lets it run in between, until goOn is
// called.
func stutter(ctx context.Context, signal func(syscall.Signal), stands, runs time.Duration) (goOn func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			signal(syscall.SIGSTOP)
			sleep.For(ctx, stands)
			signal(syscall.SIGCONT)
			sleep.For(ctx, runs)
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// withoutEtcd has all members of etcd stand still.
func withoutEtcd(_ context.Context, w *harness, _ string) (undo func() error, err error) {
	for _, m := range w.Etcd.Members {
		m.Pause()
	}
	return func() error {
		for _, m := range w.Etcd.Members {
			m.Resume()
		}
		return nil
	}, nil
}

// withoutAPI has instances end that must be replaced, while there is no API server.
func withoutAPI(ctx context.Context, w *harness, function string) (undo func() error, err error) {
	const instances = 6
	err = w.function(ctx, function, func(spec *v1alpha1.FunctionSpec) { spec.Scaling.MinInstances = instances })
	if err != nil {
		return nil, err
	}
	if err := w.until(ctx, fmt.Sprintf(`sum(windlass_scheduler_instances{function=%q,state="idle"}) == %d`, function, instances)); err != nil {
		return nil, err
	}
	w.API.Kill()
	for _, pod := range w.Kubelet.PodsOf(function) {
		err = errors.Join(err, pod.Hurt(syscall.SIGKILL))
	}
	return func() error { return w.API.Revive(ctx) }, err
}

// schedulersRestart has schedulers restart one after the other without end, so that
// each hands over what it has just been given.
func schedulersRestart(ctx context.Context, w *harness, _ string) (undo func() error, err error) {
	restarting, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := 0; restarting.Err() == nil && err == nil; i++ {
			limit, cancel := context.WithTimeout(ctx, time.Minute)
			err = w.Schedulers[i%len(w.Schedulers)].Restart(limit)
			cancel()
		}
		ended <- err
	}()
	return func() error {
		cancel()
		return <-ended
	}, nil
}
