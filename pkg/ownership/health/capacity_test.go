package health

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/ownership"
)

// talker asks for one room, and passes on what it hears.
type talker struct{ heard chan int }

func (t talker) CapacityRequests(to string) []*controlwire.CapacityRequest {
	return []*controlwire.CapacityRequest{{FunctionUid: "f of " + to, Instances: 1}}
}

func (t talker) CapacityFreed(by string, made []*controlwire.CapacityFreed) {
	select {
	case t.heard <- int(made[0].GetInstances()):
	default:
	}
}

func TestHeartbeatsCarryCapacityRequests(t *testing.T) {
	a := startScheduler(t, "127.0.0.1:0")
	a.asked = make(chan *controlwire.HeartbeatRequest, 1)
	known := newBook()
	known.edit(func(m *ownership.Map) { m.SetMembers([]ownership.Member{{ID: "a", Addr: a.addr}, {ID: "self"}}) })
	p, err := New(Config{Self: "self"}, Deps{Directory: known, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	exchange := talker{make(chan int, 1)}
	p.SetExchange(exchange)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	request := <-a.asked
	if request.GetScheduler() != "self" || len(request.GetCapacityRequests()) != 1 || request.GetCapacityRequests()[0].GetFunctionUid() != "f of a" {
		t.Errorf("said %v", request)
	}
	if n := <-exchange.heard; n != 2 {
		t.Errorf("heard of %d, want 2", n)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
