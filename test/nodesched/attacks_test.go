package main

import (
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"

	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// What an attack delays is that a newcomer's connection is accepted.
func TestANewcomerWaitsFromWhenItDials(t *testing.T) {
	const late = 300 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	nodewire.RegisterNodeServer(server, liar{})
	accepting := time.AfterFunc(late, func() { _ = server.Serve(listener) })
	defer server.Stop()
	defer accepting.Stop()
	p := &tenantPod{namespace: "shop", function: "new", name: "new-0"}
	took, err := (&siege{}).welcome(p, listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.talk.end()
	if took < late || p.talk.heard.Load() == 0 {
		t.Errorf("it has waited %s, want at least %s", took, late)
	}
}
