package invocation

import "strings"

// Headers that the gateway adds to answers and to the function's request.
const (
	HeaderInvocationID = "Windlass-Invocation-Id"
	// HeaderExecuted has an Executed, as a token of a structured field (RFC 9651).
	HeaderExecuted      = "Windlass-Executed"
	HeaderFunctionError = "Windlass-Function-Error"
	// HeaderRevision of an answer names the FunctionRevision that the call belongs to.
	HeaderRevision = "Windlass-Revision"
	// HeaderCaller names the caller for the function, where callers must authenticate.
	HeaderCaller = "Windlass-Caller"
	// HeaderDepth is how many functions have called each other to get here. A
	// function that calls another passes it on.
	HeaderDepth = "Windlass-Depth"
)

// HeaderTag of a client's request names the part of the function's traffic that the call
// is for. No function sees it.
const HeaderTag = "Windlass-Tag"

// HeaderKey is where a caller shows an API key. No function sees it.
const HeaderKey = "Windlass-Key"

// GRPCType is the Content-Type of gRPC.
const GRPCType = "application/grpc"

// IsGRPC reports whether a Content-Type is one of gRPC, which functions serve by HTTP/2. gRPC-Web, whose
// types begin alike, is made for HTTP/1.1.
func IsGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(strings.ToLower(contentType), GRPCType)
	return ok && (rest == "" || strings.IndexByte("+; ", rest[0]) >= 0)
}

// Field is a header or a trailer.
type Field struct{ Name, Value string }

// Fields are headers or trailers, in the order of their message. Names may be in any case: those
// that differ in it only are equal.
type Fields []Field

// Get is the value of the first field of a name; empty if there is none.
func (f Fields) Get(name string) string {
	for i := range f {
		if strings.EqualFold(f[i].Name, name) {
			return f[i].Value
		}
	}
	return ""
}
