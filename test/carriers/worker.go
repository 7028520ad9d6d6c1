package main

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter"
	"github.com/windlass-dev/windlass/pkg/podagent/adapter/httpadapter"
)

// worker runs the calls of an agent that parses them: in one goroutine, which stays, by the
// product's own client.
type worker struct {
	function *httpadapter.Adapter
	slot     slot
	work     chan *job
}

// job is a call in the worker.
type job struct {
	call     adapter.Call
	number   int64
	came     time.Time
	run      func()
	answer   held
	finished func(*job, error)
}

func newWorker(function string) *worker {
	w := &worker{function: httpadapter.New(httpadapter.Config{Addr: function}), work: make(chan *job, 1)}
	go func() {
		for j := range w.work {
			j.run()
		}
	}()
	return w
}

// accept lets a call in, and runs it.
func (w *worker) accept(j *job) error {
	ctx, cancel := context.WithCancel(context.Background())
	if err := w.slot.admit(j.number, j.call.Deadline, cancel); err != nil {
		cancel()
		return err
	}
	j.run = func() { w.carryOut(ctx, j) }
	w.work <- j
	return nil
}

func (w *worker) carryOut(ctx context.Context, j *job) {
	j.answer.came, j.answer.begun = j.came, time.Now()
	err := w.function.Invoke(ctx, &j.call, &j.answer)
	j.answer.exec = time.Since(j.answer.begun)
	w.slot.abandon() // frees the context
	j.answer.keeps = w.slot.vacate()
	j.finished(j, err)
}

// newJob is a call without a body, or with a whole one.
func newJob(call adapter.Call, number int64, remaining time.Duration, body []byte, finished func(*job, error)) *job {
	now := time.Now()
	j := &job{call: call, number: number, came: now, finished: finished}
	j.call.Deadline = now.Add(remaining)
	j.call.Body, j.call.ContentLength = bytes.NewReader(body), int64(len(body))
	return j
}

// held is an adapter.ResultWriter that holds an answer until it is whole.
type held struct {
	head        adapter.Head
	body        []byte
	came, begun time.Time
	exec        time.Duration
	keeps       bool
}

// WriteHead implements adapter.ResultWriter.
func (h *held) WriteHead(head adapter.Head) error {
	if head.Status >= http.StatusOK {
		h.head = head
	}
	return nil
}

// Write implements io.Writer.
func (h *held) Write(p []byte) (int, error) {
	if len(h.body)+len(p) > mostBody {
		return 0, errLargeBody
	}
	h.body = append(h.body, p...)
	return len(p), nil
}

// WriteTrailer implements adapter.ResultWriter.
func (h *held) WriteTrailer(invocation.Fields) error { return nil }
