package localapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/windlass-dev/windlass/pkg/catalog/file"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		writeError(w, http.StatusInternalServerError, &Error{Reason: ReasonInternal, Message: "the answer cannot be written: " + err.Error()})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func writeError(w http.ResponseWriter, status int, e *Error) { writeJSON(w, status, e) }

func writeNotFound(w http.ResponseWriter, key invocation.FunctionKey) {
	writeError(w, http.StatusNotFound, &Error{Reason: ReasonNotFound, Message: fmt.Sprintf("there is no function %s", key)})
}

// writeFailure answers with an error of the store.
func writeFailure(w http.ResponseWriter, key invocation.FunctionKey, err error) {
	var invalid *file.InvalidError
	switch {
	case errors.Is(err, file.ErrNotFound):
		writeNotFound(w, key)
	case errors.As(err, &invalid):
		e := &Error{Reason: ReasonInvalid, Message: invalid.Error()}
		for _, p := range invalid.Problems {
			e.Details = append(e.Details, FieldProblem{Field: p.Field, Message: p.ErrorBody()})
		}
		writeError(w, http.StatusUnprocessableEntity, e)
	default:
		writeError(w, http.StatusInternalServerError, &Error{Reason: ReasonInternal, Message: err.Error()})
	}
}
