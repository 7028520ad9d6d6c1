package attacks

import (
	"fmt"
	"math"
	"strings"

	agentwire "github.com/windlass-dev/windlass/api/wire/agent/v1alpha1"
	"github.com/windlass-dev/windlass/internal/callwire"
)

// answersWith makes a call to evil, which the attacker answers.
func answersWith(check func(w *platform, r response), frames ...message) func(*platform) {
	return func(w *platform) {
		ticket, _, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		a.send(frames...)
		a.listens()
		check(w, receive(w.T, responses, "the answer"))
	}
}

// joined is the attacker's stream as the instance that it is.
func (w *platform) joined() pullStream {
	w.Helper()
	own := w.instanceOf(evil)
	stream := w.hello(w.asAgent(), own, w.token(podOf(own), nil))
	_ = stream.Send(pull(1))
	return stream
}

// nextCall makes a call to evil and answers it, which shows that all that was sent
// before was handled.
func (w *platform) nextCall(pulls pullStream) *agentwire.Ticket {
	w.Helper()
	responses := make(chan response, 1)
	go func() { responses <- w.call("/function/evil.shop/") }()
	ticket, err := nextTicket(pulls)
	if err != nil {
		w.Fatal(err)
	}
	w.answers(ticket, responses)
	return ticket
}

// posed is what net/http answers to what is no HTTP.
const posed = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"

var lyingAttacks = []attack{
	{"F86", "execution times of 0, less, and 300 years", "", func(w *platform) {
		pulls := w.joined()
		last := w.nextCall(pulls)
		for _, ns := range []int64{0, -1, math.MinInt64, 1e12, math.MaxInt64, math.MaxInt64} {
			_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: last.GetInvocationId(), ExecNs: ns}))
			last = w.nextCall(pulls)
			// The timeout of evil is a second.
			if mean := w.counter("windlass_scheduler_estimated_execution_seconds{function=" + evil + "}"); mean < 0 || mean > 1 {
				w.Errorf("the mean is %v s after %d ns", mean, ns)
			}
		}
	}},
	{"F86", "4 billion credits", "", func(w *platform) {
		pulls := w.joined()
		for range 1_000 {
			_ = pulls.Send(pull(math.MaxUint32))
		}
		last := w.nextCall(pulls)
		_ = pulls.Send(pull(math.MaxUint32, &agentwire.Done{InvocationId: last.GetInvocationId()}))
		last = w.nextCall(pulls)
		// It holds as many as its concurrency, which is one.
		first, second := make(chan response, 1), make(chan response, 1)
		go func() { first <- w.call("/function/evil.shop/") }()
		_ = pulls.Send(pull(math.MaxUint32, &agentwire.Done{InvocationId: last.GetInvocationId()}))
		ticket, err := nextTicket(pulls)
		if err != nil {
			w.Fatal(err)
		}
		go func() { second <- w.call("/function/evil.shop/") }()
		w.until("the second waits", func() bool { return w.counter("windlass_scheduler_queue_length{function="+evil+"}") == 1 })
		w.answers(ticket, first)
		_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: ticket.GetInvocationId()}))
		if ticket, err = nextTicket(pulls); err != nil {
			w.Fatal(err)
		}
		w.answers(ticket, second)
	}},
	{"F86", "4 billion credits that it lends to a gateway", "", func(w *platform) {
		ticket, pulls, responses := w.ticketOfEvil()
		a := w.claims(ticket)
		a.send(head(callwire.Head{Status: 200, Whole: true, Keeps: true}))
		credits := func(kind callwire.Kind) {
			for range 1_000 {
				a.wire.Commit(callwire.AppendCount(a.wire.Begin(), kind, 0, math.MaxUint32))
			}
		}
		credits(callwire.KindLend)
		_ = receive(w.T, responses, "the first answer")
		// A call comes at once, and is not lost when the agent does not take it.
		go func() { responses <- w.call("/function/evil.shop/") }()
		by, err := a.next(0)
		if err != nil {
			w.Fatal(err)
		}
		credits(callwire.KindTakeBack)
		by.send(release(callwire.Release{}))
		_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: ticket.GetInvocationId()}))
		again, err := nextTicket(pulls)
		if err != nil {
			w.Fatal(err)
		}
		w.answers(again, responses)
	}},
	{"F86", "100,000 calls that it says are done", "", func(w *platform) {
		pulls := w.joined()
		var done []*agentwire.Done
		for range 100_000 {
			done = append(done, &agentwire.Done{InvocationId: newID(), ExecNs: 1})
		}
		_ = pulls.Send(pull(1, done...))
		w.nextCall(pulls)
	}},
	{"F86", "a goodbye of 3 MiB", "", func(w *platform) {
		pulls := w.joined()
		_ = pulls.Send(&agentwire.PullRequest{Kind: &agentwire.PullRequest_Goodbye{Goodbye: &agentwire.Goodbye{
			Reason: agentwire.Goodbye_REASON_FUNCTION_ENDED, Detail: "\x1b[31m\r\n" + strings.Repeat("A", 3<<20),
		}}})
		_ = pulls.CloseSend()
		for _, err := pulls.Recv(); err == nil; _, err = pulls.Recv() {
			continue
		}
	}},
	{"F86", "a failure of 3 MiB", answered + "{code=502}", answersWith(func(w *platform, r response) {
		if r.status != 502 || len(r.body) > 16<<10 {
			w.Errorf("answered %d with %d bytes", r.status, len(r.body))
		}
	}, end(callwire.End{Failure: callwire.FailureFunctionLost, Detail: marker + strings.Repeat("A", 1<<20)}))},
	{"F86", "a status that is none", answered + "{code=502}", answersWith(func(w *platform, r response) {
		if r.status != 502 || r.header.Get("Windlass-Executed") != "maybe" {
			w.Errorf("answered %d", r.status)
		}
	}, whole(101, nil), whole(200, nil))},
	{"F86", "heads of a million fields, of attempts that do not end", answered + "{code=502}", func(w *platform) {
		pulls, large := w.joined(), head(callwire.Head{Status: 200, Header: make([]callwire.Field, 1_000_000)})
		for range 20 {
			responses := make(chan response, 1)
			go func() { responses <- w.call("/function/evil.shop/") }()
			ticket, err := nextTicket(pulls)
			if err != nil {
				w.Fatal(err)
			}
			w.claims(ticket).send(large)
			if r := receive(w.T, responses, "the answer"); r.status != 502 {
				w.Errorf("answered %d", r.status)
			}
			_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: ticket.GetInvocationId()}))
		}
	}},
	{"F87", "an answer that splits itself", "", answersWith(func(w *platform, r response) {
		if r.status != 200 || r.header.Get("Set-Cookie") != "" || r.header.Get("Windlass-Executed") != "yes" || r.body != "body" {
			w.Errorf("answered %d %q with %v", r.status, r.body, r.header)
		}
	}, whole(200, []byte("body"),
		callwire.Field{Name: "X-A", Value: "a\r\nSet-Cookie: a=" + marker},
		callwire.Field{Name: "X-B\r\nSet-Cookie", Value: "b"},
		callwire.Field{Name: "Content-Length", Value: "99"},
		callwire.Field{Name: "Transfer-Encoding", Value: "chunked"},
		callwire.Field{Name: "Connection", Value: "Windlass-Executed"},
		callwire.Field{Name: "windlass-executed", Value: "no"}, callwire.Field{Name: "X_Windlass_Executed", Value: "no"}))},
	{"F93", "a function error that splits itself", "", answersWith(func(w *platform, r response) {
		if r.header.Get("Set-Cookie") != "" || len(r.header.Get("Windlass-Function-Error")) > 8<<10 {
			w.Errorf("answered with %v", r.header)
		}
	}, head(callwire.Head{
		Status: 500, Whole: true, FunctionError: "\x1b[31m" + marker + "\r\nSet-Cookie: a=b\r\n" + strings.Repeat("A", 1<<20),
	}))},
	{"F87", "an answer that is longer than it says", answered, answersWith(func(w *platform, r response) {
		if r.err == nil {
			w.Errorf("answered %q", r.body)
		}
	}, head(callwire.Head{
		// What the headers say does not count.
		Status: 200, ContentLength: 5, Header: []callwire.Field{{Name: "Content-Length", Value: "99"}},
	}), body([]byte("12345HTTP/1.1 200 OK\r\n\r\n")), end(callwire.End{}))},
	{"F87", "an answer that poses as the server's own refusal", "", answersWith(func(w *platform, r response) {
		if r.status != 200 || r.body != posed {
			w.Errorf("answered %d, %v: %q", r.status, r.err, r.body)
		}
	}, head(callwire.Head{
		Status: 200, ContentLength: -1, Header: []callwire.Field{{Name: "Content-Length", Value: itoa(len(posed))}},
	}), body([]byte(posed)), end(callwire.End{}))},
	{"F100", "an answer for every status code", "", func(w *platform) {
		pulls := w.joined()
		var last *agentwire.Ticket
		for code := 600; code < 700; code++ {
			responses := make(chan response, 1)
			go func() { responses <- w.call(fmt.Sprintf("/function/evil.shop/%d", code)) }()
			ticket, err := nextTicket(pulls)
			if err != nil {
				w.Fatal(err)
			}
			w.claims(ticket).send(whole(code, nil))
			if r := receive(w.T, responses, "the answer"); r.status != 502 {
				w.Errorf("%d became %d", code, r.status)
			}
			last = ticket
			_ = pulls.Send(pull(1, &agentwire.Done{InvocationId: last.GetInvocationId()}))
		}
	}},
}
