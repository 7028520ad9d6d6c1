package invocation

import "strings"

// GRPCType is the Content-Type of gRPC.
const GRPCType = "application/grpc"

// IsGRPC reports whether a Content-Type is one of gRPC, which functions serve by HTTP/2. gRPC-Web, whose
// types begin alike, is made for HTTP/1.1.
func IsGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(contentType), GRPCType)
	return ok && (rest == "" || strings.IndexByte("+; ", rest[0]) >= 0)
}
