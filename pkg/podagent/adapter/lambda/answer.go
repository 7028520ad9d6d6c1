package lambda

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
)

const (
	// maxAnswer bounds an answer that is not streamed, in bytes, as AWS does.
	maxAnswer = 6<<20 + 100
	// streamBytes is the largest part in which a streamed answer is passed on.
	streamBytes = 32 << 10
)

// answer is what the runtime client sent for a call.
type answer struct {
	// contentType is how the runtime client calls it.
	contentType string
	// functionError is the type of the error that body describes, or empty.
	functionError string
	body          *bufferedBody
	// stream is set instead of body if the answer is streamed.
	stream *io.PipeReader
}

// midError is an error that the function reported behind a part of its answer.
type midError struct {
	kind string
	body []byte
}

func (e *midError) Error() string {
	return fmt.Sprintf("the function reported %s in the middle of its answer: %s", e.kind, e.body)
}

// errorAnswer is an answer with an error that the adapter found.
func errorAnswer(kind, message string) *answer {
	body, _ := json.Marshal(errorBody{Message: message, Type: kind}) // strings always marshal
	return &answer{functionError: kind, body: &bufferedBody{body: body}}
}

// relay passes the answer on to w.
func (a *answer) relay(ctx context.Context, call *adapter.Call, w adapter.ResultWriter) error {
	kind, _, _ := mime.ParseMediaType(a.contentType)
	head := adapter.Head{
		Status: http.StatusOK, Header: ofType(mediaType(a.contentType)), ContentLength: -1,
	}
	var from io.Reader = a.stream
	switch {
	case a.functionError != "":
		return relayError(w, http.StatusInternalServerError, a.functionError, a.body.bytes())
	case a.stream == nil && kind != httpResponse:
		head.ContentLength = int64(len(a.body.bytes()))
		return relayWhole(w, head, a.body.bytes())
	case a.stream == nil:
		from = bytes.NewReader(a.body.bytes())
	}
	body := bufio.NewReaderSize(from, streamBytes)
	var err error
	if kind == httpResponse {
		head, err = readPrelude(body)
	} else if _, err = body.Peek(1); errors.Is(err, io.EOF) {
		err = nil
	}
	var early *midError
	if errors.As(err, &early) {
		return relayError(w, http.StatusInternalServerError, early.kind, early.body)
	}
	if err != nil {
		return explain(ctx, call, err)
	}
	if err := w.WriteHead(head); err != nil {
		return err
	}
	to := &sink{to: w}
	if _, err := io.Copy(to, body); err != nil {
		if to.err != nil {
			return to.err
		}
		return explain(ctx, call, err)
	}
	return nil
}

func ofType(mediaType string) invocation.Fields {
	return invocation.Fields{{Name: "Content-Type", Value: mediaType}}
}

func relayWhole(w adapter.ResultWriter, head adapter.Head, body []byte) error {
	if err := w.WriteHead(head); err != nil || len(body) == 0 {
		return err
	}
	_, err := w.Write(body)
	return err
}

func relayError(w adapter.ResultWriter, status int, kind string, body []byte) error {
	return relayWhole(w, adapter.Head{
		Status: status, Header: ofType("application/json"),
		ContentLength: int64(len(body)), FunctionError: kind,
	}, body)
}

// explain says what an answer that could not be read means for its call.
func explain(ctx context.Context, call *adapter.Call, err error) error {
	var bad *badPrelude
	switch {
	case ctx.Err() != nil:
		return adapter.Ended(ctx, call)
	case errors.As(err, &bad):
		return fmt.Errorf("%w: %w", adapter.ErrBadAnswer, err)
	}
	return fmt.Errorf("%w: %w", adapter.ErrFunctionLost, err)
}

// sink tells an error of writing from one of reading, and hides what else its
// writer can do, so that every read is one write.
type sink struct {
	to  io.Writer
	err error
}

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.to.Write(p)
	s.err = err
	return n, err
}

// mediaType is the type of the answer for the client. Runtime clients send
// some that say nothing.
func mediaType(sent string) string {
	switch kind, _, _ := mime.ParseMediaType(sent); kind {
	case "", "application/x-www-form-urlencoded":
		return "application/json"
	case "application/unknown":
		return "application/octet-stream"
	}
	return sent
}
