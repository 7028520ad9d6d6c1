package invocation_test

import (
	"testing"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

func TestWhatIsGRPC(t *testing.T) {
	for contentType, want := range map[string]bool{
		"application/grpc": true, "application/grpc+proto": true, "Application/gRPC; charset=x": true,
		"application/grpc-web": false, "application/grpc-web+proto": false, "application/grpcx": false, "application/json": false, "": false,
	} {
		if got := invocation.IsGRPC(contentType); got != want {
			t.Errorf("%q: %t", contentType, got)
		}
	}
}
