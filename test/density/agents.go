package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/pkg/podagent"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/agentenv"
)

// fleet are the agents of all instances. They end with this process.
type fleet struct {
	options options
	dialer  podagent.Dialer
	broke   context.CancelCauseFunc
	// scheduler is its address, set before the first instance is ordered.
	scheduler string

	mu sync.Mutex
	// meetings are those of functions, by their names.
	meetings map[string]*meeting
}

// newFleet makes a fleet that trusts the certificates in a folder; none if it is empty.
func newFleet(o options, certificates string, broke context.CancelCauseFunc) (*fleet, error) {
	f := &fleet{options: o, broke: broke, meetings: map[string]*meeting{}}
	if certificates == "" {
		return f, nil
	}
	ca, err := os.ReadFile(filepath.Join(certificates, "ca.crt"))
	if err != nil {
		return nil, err
	}
	if f.dialer.Schedulers, err = mtls.AgentCredentials(ca, domain.Scheduler()); err != nil {
		return nil, err
	}
	f.dialer.Gateways, err = mtls.AgentCalls(ca, domain.Gateway())
	return f, err
}

// obey carries out an order of the scheduler.
func (f *fleet) obey(o order) {
	if o.Stop {
		f.broke(fmt.Errorf("the scheduler has stopped instance %s, which was to stay idle: if it says that agents were silent, "+
			"the processors are too few for so many, so measure fewer with -agents", o.CID))
		return
	}
	agent := podagent.New(agentenv.Config{
		Scheduler: f.scheduler, FunctionUID: o.FunctionUID, Function: o.Function, Revision: o.Revision, CID: o.CID, Token: o.Token,
		Concurrency: 1, StartupTimeout: time.Minute, BackoffAfter: f.options.quietAfter, IdleTimeout: 24 * time.Hour,
	}, podagent.Deps{
		Adapter: f.meetingOf(o.Function), Dialer: f.dialer, Log: slog.New(slog.DiscardHandler),
	})
	go func() {
		err := agent.Run(context.Background())
		f.broke(fmt.Errorf("the agent of instance %s has ended (error: %w)", o.CID, err))
	}()
}

func (f *fleet) meetingOf(function string) *meeting {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.meetings[function]
	if m == nil {
		m = &meeting{missing: f.options.instances, full: make(chan struct{})}
		f.meetings[function] = m
	}
	return m
}

// meeting is a function that answers its first calls once there is one for each instance, so that
// each instance gets one; with one instance at once.
type meeting struct {
	mu      sync.Mutex
	missing int
	full    chan struct{}
}

var _ adapter.Adapter = (*meeting)(nil)

// WaitReady implements adapter.Adapter.
func (m *meeting) WaitReady(context.Context) error { return nil }

// Invoke implements adapter.Adapter.
func (m *meeting) Invoke(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	m.come()
	select {
	case <-m.full:
	case <-ctx.Done():
		return adapter.Ended(ctx, call)
	}
	return w.WriteHead(adapter.Head{Status: 200, ContentLength: 0})
}

func (m *meeting) come() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.missing--; m.missing == 0 {
		close(m.full)
	}
}
