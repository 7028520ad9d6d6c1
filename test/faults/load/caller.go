package load

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sys/unix"

	"github.com/windlass-dev/windlass/internal/sleep"
	"github.com/windlass-dev/windlass/pkg/invoke"
	"github.com/windlass-dev/windlass/test/faults/verdict"
)

// Now is the machine's monotonic clock in nanoseconds.
func Now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // Every Linux has it.
	}
	return now.Nano()
}

// Request is one call to make.
type Request struct {
	Function string
	// Query is the function's, such as ms=20.
	Query string
	// Body is how many bytes are sent, and Answer how many the function adds to its
	// answer.
	Body, Answer int
	// Streamed bodies are sent piece by piece, without a length.
	Streamed bool
	// Repeatable says that the function may run twice.
	Repeatable bool
}

// caller makes calls at one gateway.
type caller struct {
	name, url string
	client    *http.Client
	patience  time.Duration
}

// newCaller makes a caller that keeps connections, and gives a call up after
// patience.
func newCaller(name, url string, patience time.Duration) *caller {
	return &caller{name: name, url: url, patience: patience, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
	}}}
}

// call makes one call and waits for its end.
func (c *caller) call(ctx context.Context, nonce string, r Request) verdict.Call {
	record := verdict.Call{Nonce: nonce, Function: r.Function, Gateway: c.name, Repeatable: r.Repeatable, Began: Now()}
	patient, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	body := bytes.Repeat([]byte(nonce+"|"), r.Body/(len(nonce)+1)+1)[:r.Body]
	address := fmt.Sprintf("%s/function/%s?%s", c.url, r.Function, r.Query)
	if r.Answer > 0 {
		address += fmt.Sprintf("&out=%d", r.Answer)
	}
	// A body of a type that net/http does not know cannot be sent twice.
	request, err := http.NewRequestWithContext(patient, http.MethodPost, address, io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		panic(err) // The URL is the lab's own.
	}
	request.ContentLength = int64(len(body))
	if r.Streamed {
		request.Body, request.ContentLength = &stream{ctx: patient, rest: body}, -1
	}
	request.Header.Set("Lab-Nonce", nonce)
	answer, err := c.client.Do(request)
	if err != nil {
		failed(patient, &record, err)
		return record
	}
	defer answer.Body.Close()
	c.read(patient, answer, &record, body, r.Answer)
	record.Ended = Now()
	return record
}

// Streamed bodies come in pieces of so many bytes, each after a pause.
const (
	piece = 32 << 10
	pause = 5 * time.Millisecond
)

// stream is a body that its caller makes as it goes.
type stream struct {
	ctx  context.Context
	rest []byte
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	sleep.For(s.ctx, pause)
	n := copy(p[:min(len(p), piece)], s.rest)
	s.rest = s.rest[n:]
	return n, s.ctx.Err()
}

func (s *stream) Close() error { return nil }

// failed notes whether a call broke, or was given up, and why.
func failed(patient context.Context, record *verdict.Call, err error) {
	record.Ended = Now()
	if patient.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		record.Outcome = verdict.Unanswered
		return
	}
	record.Outcome, record.Error = verdict.Broken, err.Error()
	if in := (*url.Error)(nil); errors.As(err, &in) {
		record.Error = in.Err.Error()
	}
}

// most is how much of an answer is looked at, in bytes.
const most = 64 << 20

// read reads an answer, to which the function was to add so many bytes, and notes what
// it says.
func (c *caller) read(patient context.Context, answer *http.Response, record *verdict.Call, body []byte, added int) {
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	record.Status = answer.StatusCode
	record.Executed = verdict.Executed(answer.Header.Get(invoke.HeaderExecuted))
	record.Invocation = answer.Header.Get(invoke.HeaderInvocationID)
	if err != nil {
		failed(patient, record, err)
		return
	}
	if !record.Succeeded() {
		var problem struct{ Reason string }
		_ = json.Unmarshal(text, &problem)
		record.Reason = problem.Reason
		return
	}
	var n int
	var sum string
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	_, _ = fmt.Sscan(string(line), &record.Echo, &n, &sum)
	want := sha256.Sum256(body)
	record.Whole = n == len(body) && sum == hex.EncodeToString(want[:]) && len(rest) == added
}
