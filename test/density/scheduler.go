package main

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/bench/peers"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/serve"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/ownership"
	"github.com/windlass-dev/windlass/pkg/provisioner"
	"github.com/windlass-dev/windlass/pkg/provisioner/placement"
	"github.com/windlass-dev/windlass/pkg/scheduler"
)

// room is more than all instances request.
var room = placement.Amount{MilliCPU: 1 << 30, Memory: 1 << 50}

func (p *program) startScheduler(parent *json.Encoder) (peers.Ready, error) {
	wire, err := peers.Listen()
	if err != nil {
		return peers.Ready{}, err
	}
	instances := provisioner.New(
		provisioner.Config{Nodes: []placement.Node{{Name: schedulerID, Allocatable: room}}},
		provisioner.Deps{Driver: newDriver(parent), Now: time.Now, Log: p.log},
	)
	s, err := scheduler.New(scheduler.DefaultConfig(), scheduler.Deps{
		Catalog: p.catalog, Instances: instances,
		Ownership: ownership.NewStatic(ownership.Owner{ID: schedulerID, Addr: wire.Addr().String()}),
		Registry:  p.registry, Log: p.log, Now: time.Now,
	})
	if err != nil {
		return peers.Ready{}, err
	}
	var secure credentials.TransportCredentials
	var options []grpc.ServerOption
	if p.tls != nil {
		secure, options = p.tls.ServerCredentials(), mtls.RequirePeer(mtls.SchedulerMethods(domain))
	}
	server := serve.NewWire(p.registry, secure, options...)
	agentwire.RegisterInstancesServer(server, s)
	controlwire.RegisterSchedulerServer(server, s)
	p.parts.Start("provisioner", func(ctx context.Context) error { return instances.Run(ctx, s) })
	p.parts.Start("scheduler", s.Run)
	p.parts.Start("wire", func(ctx context.Context) error { return serve.Wire(ctx, wire, server) })
	return peers.Ready{Wire: wire.Addr().String()}, nil
}

// order is a line by which the scheduler has its parent start or stop an instance.
type order struct {
	Stop        bool   `json:"stop,omitempty"`
	FunctionUID string `json:"functionUID"`
	Function    string `json:"function,omitempty"`
	Revision    string `json:"revision,omitempty"`
	CID         string `json:"cid"`
	Token       string `json:"token,omitempty"`
}

// driver has the parent run instances. None of them ends before this process does, so it has no
// Exits.
type driver struct {
	mu     sync.Mutex // held to write
	parent *json.Encoder
}

func newDriver(parent *json.Encoder) *driver { return &driver{parent: parent} }

// Start implements provisioner.Driver.
func (d *driver) Start(spec provisioner.InstanceSpec) {
	f := spec.Function
	d.tell(order{
		FunctionUID: string(f.UID), Function: f.Key().String(), Revision: f.Revision(), CID: string(spec.CID), Token: spec.Token,
	})
}

// Stop implements provisioner.Driver. The parent takes it for a failure.
func (d *driver) Stop(functionUID string, cid invocation.CID, _ bool) {
	d.tell(order{Stop: true, FunctionUID: functionUID, CID: string(cid)})
}

// Exits implements provisioner.Driver.
func (d *driver) Exits() <-chan provisioner.Exit { return nil }

// tell writes an order. A parent that is gone ends this process in any case.
func (d *driver) tell(o order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_ = d.parent.Encode(o)
}
