package attacks

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	controlwire "github.com/windlass-dev/windlass/api/wire/control/v1alpha1"
	"github.com/windlass-dev/windlass/internal/mtls"
	"github.com/windlass-dev/windlass/internal/mtls/testca"
)

// noCertificate stands for a client that has none.
const noCertificate = "nobody"

const stranger = "some.pod"

// everybody may call what asks for a token instead.
var everybody = []string{noCertificate, domain.Gateway(), domain.Scheduler(), domain.Controller(), stranger,
	another.Gateway(), another.Scheduler(), another.Controller()}

// mayCall is which certificate is good for which method.
var mayCall = map[string][]string{
	controlwire.Scheduler_Offer_FullMethodName:     {domain.Gateway(), domain.Scheduler()},
	controlwire.Scheduler_Heartbeat_FullMethodName: {domain.Gateway(), domain.Scheduler()},
	controlwire.Scheduler_Slots_FullMethodName:     {domain.Gateway(), domain.Scheduler()},
	controlwire.Scheduler_Watch_FullMethodName:     {domain.Controller()},
	agentwire.Instances_Pull_FullMethodName:        everybody,
}

var roleAttacks = []attack{
	{"F98", "every method with every certificate", notAllowed, func(w *platform) {
		for _, service := range []grpc.ServiceDesc{controlwire.Scheduler_ServiceDesc, agentwire.Instances_ServiceDesc} {
			for _, role := range everybody {
				conn := w.asAgent()
				if role != noCertificate {
					conn = w.as(w.role(role).ClientCredentials(domain.Scheduler()), w.scheduler)
				}
				for _, method := range methodsOf(service) {
					w.checkMethod(conn, role, method)
				}
			}
		}
	}},
	{"F98", "methods of gRPC at a gateway, which has none", "", func(w *platform) {
		for _, c := range []credentials.TransportCredentials{w.agent(domain.Gateway()), w.role(domain.Scheduler()).ClientCredentials(domain.Gateway())} {
			if code := w.codeOf(w.as(c, w.gateway), controlwire.Scheduler_Watch_FullMethodName); code != codes.Unavailable {
				w.Errorf("answered with %v", code)
			}
		}
	}},
	{"F98", "methods and services that do not exist", "", func(w *platform) {
		conn := w.asAgent()
		for _, method := range []string{"/windlass.control.v1alpha1.Scheduler/offer", "/windlass.control.v1alpha1.Scheduler/", "/windlass.agent.v1alpha1.Instances/Pull/", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", "/grpc.channelz.v1.Channelz/GetServers", "/a/b", "//", "/" + marker} {
			if code := w.codeOf(conn, method); code != codes.Unimplemented {
				w.Errorf("%s: %v", method, code)
			}
		}
	}},
	{"F98", "paths without a slash", "", func(w *platform) {
		for _, path := range []string{"windlass.control.v1alpha1.Scheduler/Offer", "windlass.control.v1alpha1.Scheduler/Watch", "", "*"} {
			if said := rawPath(w, path); strings.Contains(said, "grpc-status=0") || !strings.Contains(said, "grpc-status=") && said != "reset" {
				w.Errorf("%q: %s", path, said)
			}
		}
	}},
	{"F101", "connections without TLS, with an old one, or of another CA", "", func(w *platform) {
		theirs := testca.New(w)
		others, err := mtls.Load(theirs.Folder(w, domain.Gateway()), w.discard())
		if err != nil {
			w.Fatal(err)
		}
		for name, c := range map[string]credentials.TransportCredentials{
			"no TLS":     insecure.NewCredentials(),
			"TLS 1.2":    credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}),
			"another CA": others.ClientCredentials(domain.Scheduler()),
		} {
			if code := w.codeOf(w.as(c, w.scheduler), controlwire.Scheduler_Offer_FullMethodName); code != codes.Unavailable {
				w.Errorf("%s: %v", name, code)
			}
		}
		theirsCalls, err := mtls.AgentCalls(theirs.PEM(), domain.Gateway())
		if err != nil {
			w.Fatal(err)
		}
		old := w.callsTLS()
		old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		posing := w.callsTLS()
		posing.NextProtos, posing.VerifyConnection = nil, nil
		for name, c := range map[string]*tls.Config{"TLS 1.2": old, "another CA": theirsCalls, "no protocol": posing} {
			conn, err := tls.Dial("tcp", w.gateway, c)
			if err != nil {
				continue
			}
			// Since TLS 1.3 a client learns of the refusal after its own part.
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			if n, err := conn.Read(make([]byte, 1)); n > 0 || isTimeout(err) {
				w.Errorf("%s: a gateway takes it", name)
			}
			_ = conn.Close()
		}
	}},
}

func methodsOf(service grpc.ServiceDesc) (names []string) {
	for _, m := range service.Streams {
		names = append(names, "/"+service.ServiceName+"/"+m.StreamName)
	}
	for _, m := range service.Methods {
		names = append(names, "/"+service.ServiceName+"/"+m.MethodName)
	}
	return names
}

// checkMethod checks that a method is refused to all but those who may call it. Of
// those, the method itself finds that what it is sent makes no sense.
func (w *platform) checkMethod(conn *grpc.ClientConn, role, method string) {
	w.Helper()
	allowed := false
	for _, name := range mayCall[method] {
		allowed = allowed || name == role
	}
	code := w.codeOf(conn, method)
	if refused := code == codes.Unauthenticated || code == codes.PermissionDenied; refused == allowed {
		w.Errorf("%s as %s: %v, want allowed=%v", method, role, code, allowed)
	}
}

// codeOf is how a stream ends that sends one empty message and no more.
func (w *platform) codeOf(conn *grpc.ClientConn, method string) codes.Code {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err != nil {
		return status.Code(err)
	}
	_ = stream.SendMsg(&controlwire.WatchRequest{})
	_ = stream.CloseSend()
	waiting := time.AfterFunc(3*time.Second, cancel) // a Watch goes on
	defer waiting.Stop()
	for {
		if err := stream.RecvMsg(&controlwire.WatchReply{}); err == io.EOF {
			return codes.OK
		} else if err != nil {
			return status.Code(err)
		}
	}
}

// rawPath sends a request with a path that gRPC clients do not send, and returns
// what was answered.
func rawPath(w *platform, path string) string {
	w.Helper()
	h := w.newFrames(w.overTLS())
	h.headers(1, true, ":method", "POST", ":scheme", "https", ":path", path, ":authority", "x", "content-type", "application/grpc", "te", "trailers")
	var said []string
	decoder := hpack.NewDecoder(4096, func(f hpack.HeaderField) { said = append(said, f.Name+"="+f.Value) })
	for {
		frame, err := h.framer.ReadFrame()
		if err != nil {
			return fmt.Sprintf("reset %v", err)
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			_, _ = decoder.Write(f.HeaderBlockFragment())
			if f.StreamEnded() {
				return strings.Join(said, " ")
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			return "reset"
		}
	}
}
