//go:build clients

package clients

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// service calls the gRPC service of a function at the first gateway, or at a proxy before it.
func service(t *testing.T, function, addr string) grpc_testing.TestServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:"+addr, grpc.WithAuthority(host(function)), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return grpc_testing.NewTestServiceClient(conn)
}

func TestGRPCCallsOfAllKinds(t *testing.T) { callsOfAllKinds(t, service(t, peer, gatewayAddr())) }

// callsOfAllKinds makes unary and streaming calls and compares what comes.
func callsOfAllKinds(t *testing.T, client grpc_testing.TestServiceClient) {
	t.Helper()
	payload, err := io.ReadAll(chance(1 << 20))
	if err != nil {
		t.Fatal(err)
	}
	var header, trailer metadata.MD
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-said", "hello", "x-said-bin", "\x00\xff")
	answer, err := client.UnaryCall(ctx, &grpc_testing.SimpleRequest{Payload: &grpc_testing.Payload{Body: payload}}, grpc.Header(&header), grpc.Trailer(&trailer))
	if err != nil || !bytes.Equal(answer.GetPayload().GetBody(), payload) || header.Get("x-heard")[0] != "hello" || trailer.Get("x-ended-bin")[0] != "\x00\xff" {
		t.Errorf("a unary call: %v, header %v, trailer %v", err, header, trailer)
	}
	_, err = client.UnaryCall(ctx, &grpc_testing.SimpleRequest{ResponseStatus: &grpc_testing.EchoStatus{Code: int32(codes.DataLoss), Message: "all gône ☹"}})
	if s := status.Convert(err); s.Code() != codes.DataLoss || s.Message() != "all gône ☹" {
		t.Errorf("a status of the function's came as %v", err)
	}
	if _, err := client.UnimplementedCall(ctx, &grpc_testing.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a method that there is not: %v", err)
	}
	upload, err := client.StreamingInputCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		if err := upload.Send(&grpc_testing.StreamingInputCallRequest{Payload: &grpc_testing.Payload{Body: payload}}); err != nil {
			t.Fatal(err)
		}
	}
	if total, err := upload.CloseAndRecv(); err != nil || total.GetAggregatedPayloadSize() != 4<<20 {
		t.Errorf("an upload: %v, %v", total, err)
	}
	pingPong(t, client)
}

// pingPong sends each request once the answer to the one before has come, so that nothing can
// wait in a buffer.
func pingPong(t *testing.T, client grpc_testing.TestServiceClient) {
	t.Helper()
	duplex, err := client.FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int32{1, 70_000, 3, 500_000} {
		asked := &grpc_testing.StreamingOutputCallRequest{ResponseParameters: []*grpc_testing.ResponseParameters{{Size: size}}}
		if err := duplex.Send(asked); err != nil {
			t.Fatal(err)
		}
		if got, err := duplex.Recv(); err != nil || len(got.GetPayload().GetBody()) != int(size) {
			t.Fatalf("an answer of %d bytes in %v", len(got.GetPayload().GetBody()), err)
		}
	}
	if err := duplex.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := duplex.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v", err)
	}
}
