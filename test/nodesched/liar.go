package main

import (
	"net"
	"time"

	"google.golang.org/grpc"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// liar is a node agent that wants calls to ask, says that they still wait and that their instances
// are low, whether they are or not, and grants all asks or none.
type liar struct {
	nodewire.UnimplementedNodeServer
	grants bool
}

// startLiar serves a liar at an address of its own.
func startLiar(grants bool) (addr string, stop func(), err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer()
	nodewire.RegisterNodeServer(server, liar{grants: grants})
	go func() { _ = server.Serve(listener) }() // until stop
	return listener.Addr().String(), server.Stop, nil
}

// Compute implements nodewire.NodeServer.
func (l liar) Compute(stream nodewire.Node_ComputeServer) error {
	hello, err := stream.Recv()
	if err != nil {
		return err
	}
	asks := make(chan uint64)
	go func() {
		defer close(asks)
		for {
			said, err := stream.Recv()
			if err != nil {
				return
			}
			if ask := said.GetAsk(); ask != nil {
				select {
				case asks <- ask.GetAsk():
				case <-stream.Context().Done():
					return
				}
			}
		}
	}()
	every := 100 * time.Millisecond
	lies := []*nodewire.ComputeReply{
		{Kind: &nodewire.ComputeReply_Welcome{Welcome: &nodewire.Welcome{
			Protocol: hello.GetHello().GetProtocolMax(), StillEveryNs: int64(every),
		}}},
		{Kind: &nodewire.ComputeReply_Mode{Mode: &nodewire.Mode{Ask: true}}},
		{Kind: &nodewire.ComputeReply_Low{Low: &nodewire.Low{Low: true}}},
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		for _, lie := range lies {
			if err := stream.Send(lie); err != nil {
				return err
			}
		}
		lies = lies[:0]
		select {
		case ask, open := <-asks:
			if !open {
				return nil
			}
			if l.grants {
				lies = append(lies, &nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Grant{Grant: &nodewire.Grant{Ask: ask}}})
			}
		case <-ticker.C:
			lies = append(lies, &nodewire.ComputeReply{Kind: &nodewire.ComputeReply_Still{Still: &nodewire.Still{}}})
		}
	}
}
