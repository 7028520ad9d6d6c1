package mtls_test

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/emptypb"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

func TestEveryMethodOfTheWireIsListed(t *testing.T) {
	list := mtls.SchedulerMethods(domain)
	maps.Copy(list, mtls.NodeMethods())
	var served []string
	for _, file := range []protoreflect.FileDescriptor{agentwire.File_wire_agent_v1alpha1_agent_proto, controlwire.File_wire_control_v1alpha1_control_proto, nodewire.File_wire_node_v1alpha1_node_proto} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := "/" + string(service.FullName()) + "/" + string(service.Methods().Get(j).Name())
				served = append(served, method)
				if _, ok := list[method]; !ok {
					t.Errorf("the list does not say who may call %s: add it", method)
				}
			}
		}
	}
	for method := range list {
		if !slices.Contains(served, method) {
			t.Errorf("%s is listed and does not exist", method)
		}
	}
}

// The services that unlisted and nobody belong to are on the server but not on
// the wire; nobody is listed with no name at all.
const (
	unlistedUnary  = "/test.Extra/Unary"
	unlistedStream = "/test.Extra/Stream"
	nobody         = "/test.Extra/Nobody"
)

func TestWhoMayCallWhat(t *testing.T) {
	ca := testca.New(t)
	methods := mtls.SchedulerMethods(domain)
	methods[nobody] = []string{}
	addr := serve(t, role(t, ca, domain.Scheduler()).ServerCredentials(), methods)
	// What RequirePeer was given is the caller's again.
	methods[unlistedUnary] = nil

	clients := map[string]credentials.TransportCredentials{
		"agent":      agent(t, ca, domain.Scheduler()),
		"gateway":    role(t, ca, "windlass-gateway.windlass-system.svc", domain.Gateway()).ClientCredentials(domain.Scheduler()),
		"scheduler":  role(t, ca, domain.Scheduler()).ClientCredentials(domain.Scheduler()),
		"controller": role(t, ca, domain.Controller()).ClientCredentials(domain.Scheduler()),
		"wildcard":   role(t, ca, "*."+string(domain)).ClientCredentials(domain.Scheduler()),
		"nameless":   role(t, ca).ClientCredentials(domain.Scheduler()),
	}
	// Unimplemented is what the services of the test answer to who may call.
	const allowed = codes.Unimplemented
	for _, c := range []struct {
		method, client string
		want           codes.Code
		mentions       string
	}{
		{controlwire.Scheduler_Offer_FullMethodName, "gateway", allowed, ""},
		{controlwire.Scheduler_Offer_FullMethodName, "controller", codes.PermissionDenied, domain.Gateway()},
		{controlwire.Scheduler_Offer_FullMethodName, "wildcard", codes.PermissionDenied, domain.Gateway()},
		{controlwire.Scheduler_Offer_FullMethodName, "nameless", codes.PermissionDenied, domain.Gateway()},
		{controlwire.Scheduler_Offer_FullMethodName, "agent", codes.Unauthenticated, domain.Gateway()},
		{controlwire.Scheduler_Offer_FullMethodName, "scheduler", allowed, ""},
		{controlwire.Scheduler_Heartbeat_FullMethodName, "scheduler", allowed, ""},
		{controlwire.Scheduler_Heartbeat_FullMethodName, "gateway", allowed, ""},
		{controlwire.Scheduler_Heartbeat_FullMethodName, "controller", codes.PermissionDenied, domain.Scheduler()},
		{controlwire.Scheduler_Heartbeat_FullMethodName, "agent", codes.Unauthenticated, domain.Scheduler()},
		{controlwire.Scheduler_Slots_FullMethodName, "scheduler", allowed, ""},
		{controlwire.Scheduler_Slots_FullMethodName, "gateway", allowed, ""},
		{controlwire.Scheduler_Slots_FullMethodName, "agent", codes.Unauthenticated, domain.Scheduler()},
		{controlwire.Scheduler_Watch_FullMethodName, "controller", allowed, ""},
		{controlwire.Scheduler_Watch_FullMethodName, "gateway", codes.PermissionDenied, domain.Controller()},
		{controlwire.Scheduler_Watch_FullMethodName, "agent", codes.Unauthenticated, domain.Controller()},
		{agentwire.Instances_Pull_FullMethodName, "agent", allowed, ""},
		{agentwire.Instances_Pull_FullMethodName, "gateway", allowed, ""},
		{unlistedUnary, "gateway", codes.PermissionDenied, unlistedUnary},
		{unlistedStream, "gateway", codes.PermissionDenied, unlistedStream},
		{nobody, "gateway", codes.PermissionDenied, nobody},
		{nobody, "agent", codes.Unauthenticated, nobody},
	} {
		t.Run(c.client+c.method, func(t *testing.T) {
			conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(clients[c.client]))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			err = call(t.Context(), conn, c.method)
			if status.Code(err) != c.want || !strings.Contains(err.Error(), c.mentions) {
				t.Errorf("the answer is %v, want %v that mentions %q", err, c.want, c.mentions)
			}
		})
	}
}

func TestNobodyHasANameWithoutTLS(t *testing.T) {
	if names, ok := mtls.PeerName(t.Context()); ok {
		t.Errorf("outside of a call the peer is %q", names)
	}
	if names, ok := mtls.PeerName(peer.NewContext(t.Context(), &peer.Peer{})); ok {
		t.Errorf("without TLS the peer is %q", names)
	}
	conn, err := grpc.NewClient(serve(t, insecure.NewCredentials(), mtls.SchedulerMethods(domain)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := call(t.Context(), conn, controlwire.Scheduler_Offer_FullMethodName); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the answer is %v, want %v", err, codes.Unauthenticated)
	}
}

// call opens a stream, which suits unary methods too, and returns how it ended.
func call(ctx context.Context, conn *grpc.ClientConn, method string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
		return stream.RecvMsg(&emptypb.Empty{})
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(&emptypb.Empty{})
}

// serve runs a server of the wire, and of a service that it does not have.
func serve(t *testing.T, creds credentials.TransportCredentials, methods mtls.Methods) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(mtls.RequirePeer(methods), grpc.Creds(creds))...)
	agentwire.RegisterInstancesServer(server, agentwire.UnimplementedInstancesServer{})
	controlwire.RegisterSchedulerServer(server, controlwire.UnimplementedSchedulerServer{})
	server.RegisterService(&extra, nil)
	done := make(chan error)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return listener.Addr().String()
}

var extra = grpc.ServiceDesc{
	ServiceName: "test.Extra",
	HandlerType: (*any)(nil),
	Methods:     []grpc.MethodDesc{{MethodName: "Unary", Handler: unary("Unary")}, {MethodName: "Nobody", Handler: unary("Nobody")}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Stream", ServerStreams: true, ClientStreams: true,
		Handler: func(any, grpc.ServerStream) error { return status.Error(codes.Unimplemented, "reached") },
	}},
}

func unary(name string) grpc.MethodHandler {
	return func(srv any, ctx context.Context, _ func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		return interceptor(ctx, nil, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/test.Extra/" + name},
			func(context.Context, any) (any, error) { return nil, status.Error(codes.Unimplemented, "reached") })
	}
}

// Only who may call is read.
func TestS2ACallIsRefusedBeforeItsMessageIsRead(t *testing.T) {
	ca := testca.New(t)
	addr := serve(t, role(t, ca, domain.Scheduler()).ServerCredentials(), mtls.SchedulerMethods(domain))
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(agent(t, ca, domain.Scheduler())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, method := range []string{controlwire.Scheduler_Slots_FullMethodName, controlwire.Scheduler_Watch_FullMethodName, controlwire.Scheduler_Offer_FullMethodName} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
		if err == nil {
			err = stream.RecvMsg(new(emptypb.Empty)) // nothing was sent
		}
		cancel()
		if status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestS11TwoWindlassesOfOneCADoNotTrustEachOther has one CA for both, as an issuer that
// is shared is.
func TestS11TwoWindlassesOfOneCADoNotTrustEachOther(t *testing.T) {
	const other mtls.Domain = "windlass.team-b.windlass"
	ca := testca.New(t)
	scheduler := role(t, ca, domain.Scheduler())
	addr := serve(t, scheduler.ServerCredentials(), mtls.SchedulerMethods(domain))
	for method, name := range map[string]string{
		controlwire.Scheduler_Offer_FullMethodName:     other.Gateway(),
		controlwire.Scheduler_Heartbeat_FullMethodName: other.Scheduler(),
		controlwire.Scheduler_Watch_FullMethodName:     other.Controller(),
	} {
		theirs := role(t, ca, name)
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(theirs.ClientCredentials(domain.Scheduler())))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if got := status.Code(call(t.Context(), conn, method)); got != codes.PermissionDenied {
			t.Errorf("%s calls %s: %v, want PermissionDenied", name, method, got)
		}
		wantRefused(t, scheduler.ServerCredentials(), theirs.ClientCredentials(other.Scheduler()), "not "+other.Scheduler())
	}
	wantRefused(t, scheduler.ServerCredentials(), agent(t, ca, other.Scheduler()), "not "+other.Scheduler())
	for _, name := range []string{mtls.Domain("").Gateway(), mtls.Domain("").Scheduler()} {
		wantRefused(t, scheduler.ServerCredentials(), scheduler.ClientCredentials(name), "ServerName")
	}
}
