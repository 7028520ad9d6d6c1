package lambda

import (
	"encoding/json"
	"net/http"
	"regexp"
)

// refusal is an error answer of the Runtime API.
type refusal struct {
	status  int
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

var (
	refusedState = refusal{http.StatusForbidden,
		"this request is not allowed in the state that the runtime is in", "InvalidStateTransition"}
	refusedID = refusal{http.StatusBadRequest,
		"no call with this request id waits for an answer", "InvalidRequestID"}
	refusedMode = refusal{http.StatusBadRequest,
		"Lambda-Runtime-Function-Response-Mode must be streaming or absent", "InvalidFunctionResponseMode"}
	refusedTruncated = refusal{http.StatusBadRequest,
		"the request's body is not complete", "TruncatedHTTPRequest"}
	refusedAssignment = refusal{http.StatusGone,
		"the instance is no spare one, or somebody has or fetches its assignment already", "Gone"}
	refusedStranger = refusal{http.StatusForbidden,
		"only the function's runtime is served here", "Forbidden"}
	refusedSize = refusal{http.StatusRequestEntityTooLarge,
		"the answer is too large", "RequestEntityTooLarge"}
)

func (no *refusal) write(w http.ResponseWriter) {
	writeJSON(w, no.status, no)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	// Strings and maps of strings cannot fail to marshal.
	body, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// errorBody is an error as runtime clients write it.
type errorBody struct {
	Message string `json:"errorMessage"`
	Type    string `json:"errorType"`
}

const (
	unknownError     = "Runtime.Unknown"
	responseTooLarge = "Function.ResponseSizeTooLarge"
)

var errorName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.$:]{0,127}$`)

// errorType is the type by which a reported error is known. AWS knows only those
// that begin with Runtime or Function; the name of an exception says more, and
// nothing here depends on the list.
func errorType(reported string) string {
	if errorName.MatchString(reported) {
		return reported
	}
	return unknownError
}
