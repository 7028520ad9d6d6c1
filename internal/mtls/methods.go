package mtls

import (
	"context"
	"maps"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	nodewire "github.com/windlass-dev/windlass/api/wire/node/v1alpha1"
)

// Methods says who may call which method. It maps the full names of gRPC methods to lists of
// names; the client's certificate must have one of them. Nil, unlike an empty list, means that
// any client may call, because the method itself authenticates it.
type Methods map[string][]string

// SchedulerMethods says who may call which methods of a domain's schedulers.
func SchedulerMethods(d Domain) Methods {
	return Methods{
		// Schedulers pass on what gateways offered to them.
		controlwire.Scheduler_Offer_FullMethodName:     {d.Gateway(), d.Scheduler()},
		controlwire.Scheduler_Heartbeat_FullMethodName: {d.Gateway(), d.Scheduler()},
		controlwire.Scheduler_Slots_FullMethodName:     {d.Gateway(), d.Scheduler()},
		controlwire.Scheduler_Watch_FullMethodName:     {d.Controller()},
		// The first message holds the token of the instance.
		agentwire.Instances_Pull_FullMethodName: nil,
	}
}

// NodeMethods says who may call which methods of node agents.
func NodeMethods() Methods {
	// The first message holds the token of the instance.
	return Methods{nodewire.Node_Compute_FullMethodName: nil}
}

// RequirePeer makes a gRPC server refuse every call that methods does not allow:
// with Unauthenticated if a certificate is needed and none was shown, and with
// PermissionDenied if it has the wrong name or the method is not listed. No message
// to a method of the wire is read before that.
func RequirePeer(methods Methods) []grpc.ServerOption {
	methods = maps.Clone(methods)
	return []grpc.ServerOption{
		// The interceptor of a call with one message comes after that message.
		grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
			if unary[info.FullMethodName] {
				return ctx, methods.authorize(ctx, info.FullMethodName)
			}
			return ctx, nil
		}),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if err := methods.authorize(ctx, info.FullMethod); err != nil {
				return nil, err
			}
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			if err := methods.authorize(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return handler(srv, stream)
		}),
	}
}

// unary are the methods of the wire that take one message.
var unary = func() map[string]bool {
	names := make(map[string]bool)
	for _, service := range []grpc.ServiceDesc{agentwire.Instances_ServiceDesc, controlwire.Scheduler_ServiceDesc, nodewire.Node_ServiceDesc} {
		for _, method := range service.Methods {
			names["/"+service.ServiceName+"/"+method.MethodName] = true
		}
	}
	return names
}()

func (m Methods) authorize(ctx context.Context, method string) error {
	allowed, listed := m[method]
	if !listed {
		return status.Errorf(codes.PermissionDenied, "nobody may call %s: it is not in the server's list of methods", method)
	}
	if allowed == nil {
		return nil
	}
	names, ok := PeerName(ctx)
	if !ok {
		return status.Errorf(codes.Unauthenticated, "%s needs a client certificate with the name %s: none was shown",
			method, strings.Join(allowed, " or "))
	}
	if !slices.ContainsFunc(names, func(name string) bool { return slices.Contains(allowed, name) }) {
		return status.Errorf(codes.PermissionDenied, "%s needs a client certificate with the name %s: the one shown has %q",
			method, strings.Join(allowed, " or "), names)
	}
	return nil
}
