package invocation

// Executed says whether the function ran, as far as the sender of the answer can know. Every
// answer of the gateway carries it, and No is never wrong.
type Executed string

const (
	// ExecutedNo says that the function provably did not run: the call may
	// be repeated blindly.
	ExecutedNo Executed = "no"
	// ExecutedMaybe says that an instance had claimed the call and its
	// result was lost.
	ExecutedMaybe Executed = "maybe"
	// ExecutedYes says that the function ran and this is its answer.
	ExecutedYes Executed = "yes"
)

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
