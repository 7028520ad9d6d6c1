package wiretls_test

import (
	"context"
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
	"google.golang.org/protobuf/types/known/emptypb"

	wirev1 "github.com/windlass-dev/windlass/api/wire/v1"
	"github.com/windlass-dev/windlass/pkg/wiretls"
	"github.com/windlass-dev/windlass/pkg/wiretls/testca"
)

func TestEveryMethodOfTheWireIsListed(t *testing.T) {
	lists := map[string]wiretls.Methods{"Scheduler": wiretls.SchedulerMethods(domain), "Gateway": wiretls.GatewayMethods()}
	services := wirev1.File_wire_v1_wire_proto.Services()
	for i := range services.Len() {
		service := services.Get(i)
		list, ok := lists[string(service.Name())]
		if !ok {
			t.Errorf("no list says who may call %s: add one", service.FullName())
			continue
		}
		var methods []string
		for j := range service.Methods().Len() {
			method := "/" + string(service.FullName()) + "/" + string(service.Methods().Get(j).Name())
			methods = append(methods, method)
			if _, ok := list[method]; !ok {
				t.Errorf("no list says who may call %s: add it", method)
			}
		}
		for method := range list {
			if !slices.Contains(methods, method) {
				t.Errorf("%s is listed and does not exist", method)
			}
		}
	}
	if services.Len() != len(lists) {
		t.Errorf("the wire has %d services, and there are %d lists", services.Len(), len(lists))
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
	methods := wiretls.SchedulerMethods(domain)
	for method, names := range wiretls.GatewayMethods() {
		methods[method] = names
	}
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
		{wirev1.Scheduler_Offer_FullMethodName, "gateway", allowed, ""},
		{wirev1.Scheduler_Offer_FullMethodName, "controller", codes.PermissionDenied, domain.Gateway()},
		{wirev1.Scheduler_Offer_FullMethodName, "wildcard", codes.PermissionDenied, domain.Gateway()},
		{wirev1.Scheduler_Offer_FullMethodName, "nameless", codes.PermissionDenied, domain.Gateway()},
		{wirev1.Scheduler_Offer_FullMethodName, "agent", codes.Unauthenticated, domain.Gateway()},
		{wirev1.Scheduler_Offer_FullMethodName, "scheduler", allowed, ""},
		{wirev1.Scheduler_Beat_FullMethodName, "scheduler", allowed, ""},
		{wirev1.Scheduler_Beat_FullMethodName, "gateway", allowed, ""},
		{wirev1.Scheduler_Beat_FullMethodName, "controller", codes.PermissionDenied, domain.Scheduler()},
		{wirev1.Scheduler_Beat_FullMethodName, "agent", codes.Unauthenticated, domain.Scheduler()},
		{wirev1.Scheduler_Slots_FullMethodName, "scheduler", allowed, ""},
		{wirev1.Scheduler_Slots_FullMethodName, "gateway", allowed, ""},
		{wirev1.Scheduler_Slots_FullMethodName, "agent", codes.Unauthenticated, domain.Scheduler()},
		{wirev1.Scheduler_Watch_FullMethodName, "controller", allowed, ""},
		{wirev1.Scheduler_Watch_FullMethodName, "gateway", codes.PermissionDenied, domain.Controller()},
		{wirev1.Scheduler_Watch_FullMethodName, "agent", codes.Unauthenticated, domain.Controller()},
		{wirev1.Scheduler_Pull_FullMethodName, "agent", allowed, ""},
		{wirev1.Scheduler_Pull_FullMethodName, "gateway", allowed, ""},
		{wirev1.Gateway_Attempt_FullMethodName, "agent", allowed, ""},
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
	if names, ok := wiretls.PeerName(t.Context()); ok {
		t.Errorf("outside of a call the peer is %q", names)
	}
	if names, ok := wiretls.PeerName(peer.NewContext(t.Context(), &peer.Peer{})); ok {
		t.Errorf("without TLS the peer is %q", names)
	}
	conn, err := grpc.NewClient(serve(t, insecure.NewCredentials(), wiretls.SchedulerMethods(domain)),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := call(t.Context(), conn, wirev1.Scheduler_Offer_FullMethodName); status.Code(err) != codes.Unauthenticated {
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
func serve(t *testing.T, creds credentials.TransportCredentials, methods wiretls.Methods) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(append(wiretls.RequirePeer(methods), grpc.Creds(creds))...)
	wirev1.RegisterSchedulerServer(server, wirev1.UnimplementedSchedulerServer{})
	wirev1.RegisterGatewayServer(server, wirev1.UnimplementedGatewayServer{})
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
	addr := serve(t, role(t, ca, domain.Scheduler()).ServerCredentials(), wiretls.SchedulerMethods(domain))
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(agent(t, ca, domain.Scheduler())))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, method := range []string{wirev1.Scheduler_Slots_FullMethodName, wirev1.Scheduler_Watch_FullMethodName, wirev1.Scheduler_Offer_FullMethodName} {
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
	const other wiretls.Domain = "windlass.team-b.windlass"
	ca := testca.New(t)
	scheduler := role(t, ca, domain.Scheduler())
	addr := serve(t, scheduler.ServerCredentials(), wiretls.SchedulerMethods(domain))
	for method, name := range map[string]string{
		wirev1.Scheduler_Offer_FullMethodName: other.Gateway(),
		wirev1.Scheduler_Beat_FullMethodName:  other.Scheduler(),
		wirev1.Scheduler_Watch_FullMethodName: other.Controller(),
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
	for _, name := range []string{wiretls.Domain("").Gateway(), wiretls.Domain("").Scheduler()} {
		wantRefused(t, scheduler.ServerCredentials(), scheduler.ClientCredentials(name), "ServerName")
	}
}
