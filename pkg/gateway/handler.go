package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/table"
	"github.com/windlass-dev/windlass/pkg/invoke"
)

// smallBody is the largest body, in bytes, that is read before an instance is
// asked for and that rides in the answer to the claim.
const smallBody = 64 << 10

// ServeHTTP serves /function/{namespace}/{name}/{path...} and, for the namespace
// "default", /function/{name}/{path...}.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fn, uri, p := g.route(r)
	if p != nil {
		g.metrics.refusedAtTheEdge(p.Reason)
		p.write(w)
		return
	}
	// 1. Refuse what will not be run, before any of the body is read.
	if p := g.admissible(r); p != nil {
		p.Function = fn.Key().String()
		g.metrics.refusedAtTheEdge(p.Reason)
		p.write(w)
		return
	}
	// 2. Read a small body, so that a slow client costs no instance.
	c := g.newCall(w, r, fn, uri)
	if err := c.readSmall(g.config.MaxQueueTime); err != nil {
		c.fail(newProblem(http.StatusBadRequest, invoke.ExecutedNo, reasonBadBody, "reading the request body: "+err.Error()))
		g.metrics.ended(c)
		return
	}
	// 3. Enter it in the table and offer its ticket.
	deadline := c.admitted.Add(g.config.MaxQueueTime)
	in := table.Invocation[*call]{
		ID: c.id, FunctionUID: string(fn.UID), Token: invoke.NewToken(),
		Admitted: c.admitted, Deadline: deadline, Payload: c,
	}
	g.mu.Lock()
	err := g.table.Admit(in, c.admitted)
	g.mu.Unlock()
	if err != nil {
		p := newProblem(http.StatusServiceUnavailable, invoke.ExecutedNo, reasonOverloaded,
			fmt.Sprintf("this gateway holds %d calls already; try again soon", g.config.MaxInvocations))
		p.retryAfter = time.Second
		c.fail(p)
		g.metrics.ended(c)
		return
	}
	g.metrics.begun(c)
	g.offer(in, c.admitted)
	// 4. Wait until it is answered, the client is gone, or time is up.
	g.wait(r.Context(), c, deadline)
	c.waitBody()
	g.metrics.ended(c)
	if c.cut() {
		// The only way to tell a client that an answer is not whole.
		panic(http.ErrAbortHandler)
	}
}

// route finds the function of a path, and what of the path is the function's.
func (g *Gateway) route(r *http.Request) (*v1alpha1.Function, string, *problem) {
	rest, found := strings.CutPrefix(r.URL.EscapedPath(), "/function/")
	first, afterFirst, _ := strings.Cut(rest, "/")
	if !found || first == "" {
		p := newProblem(http.StatusNotFound, invoke.ExecutedNo, reasonBadFunction,
			"functions are called at /function/{namespace}/{name}/... or, in the namespace default, /function/{name}/...")
		return nil, "", &p
	}
	second, afterSecond, _ := strings.Cut(afterFirst, "/")
	fn, known := g.deps.Catalog.Get(invoke.FunctionKey{Namespace: first, Name: second})
	path := afterSecond
	if !known {
		fn, known = g.deps.Catalog.Get(invoke.FunctionKey{Namespace: v1alpha1.DefaultNamespace, Name: first})
		path = afterFirst
	}
	if !known {
		detail := fmt.Sprintf("there is no function %q in the namespace %q", first, v1alpha1.DefaultNamespace)
		if second != "" {
			detail = fmt.Sprintf("there is no function %s/%s, and none named %q in the namespace %q",
				first, second, first, v1alpha1.DefaultNamespace)
		}
		p := newProblem(http.StatusNotFound, invoke.ExecutedNo, reasonNotFound, detail+"; see windlass list --all-namespaces")
		return nil, "", &p
	}
	uri := "/" + path
	if r.URL.RawQuery != "" {
		uri += "?" + r.URL.RawQuery
	}
	return fn, uri, nil
}

// admissible says why a call will not be taken, or nil.
func (g *Gateway) admissible(r *http.Request) *problem {
	switch {
	case g.draining.Load():
		p := newProblem(http.StatusServiceUnavailable, invoke.ExecutedNo, reasonDraining, "this gateway is shutting down")
		p.retryAfter = time.Second
		return &p
	case r.ContentLength > g.config.MaxBody:
		p := g.tooBig(invoke.ExecutedNo)
		return &p
	}
	return nil
}

func (g *Gateway) tooBig(executed invoke.Executed) problem {
	return newProblem(http.StatusRequestEntityTooLarge, executed, reasonBodyTooBig,
		fmt.Sprintf("the request body is larger than the limit of %d bytes; send less, or raise the gateway's limit (windlass up --max-body)", g.config.MaxBody))
}

func (g *Gateway) newCall(w http.ResponseWriter, r *http.Request, fn *v1alpha1.Function, uri string) *call {
	now := time.Now()
	rc := http.NewResponseController(w)
	// Without it, HTTP/1.1 would read the rest of the body before the first
	// byte of the answer is sent. HTTP/2 is full duplex anyway and says no.
	_ = rc.EnableFullDuplex()
	return &call{
		id: invoke.NewID(now), function: fn, uri: uri, request: r, admitted: now,
		w: w, rc: rc, ended: make(chan struct{}),
	}
}

// readSmall reads the whole body if its length is known and small. A body of
// unknown length is not read ahead: its sender may wait for the answer.
func (c *call) readSmall(within time.Duration) error {
	n := c.request.ContentLength
	if n < 0 || n > smallBody {
		return nil
	}
	c.small, c.whole = make([]byte, n), true
	if n == 0 {
		return nil
	}
	_ = c.rc.SetReadDeadline(c.admitted.Add(within))
	_, err := io.ReadFull(c.request.Body, c.small)
	_ = c.rc.SetReadDeadline(time.Time{})
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends before its Content-Length")
	}
	return err
}

// wait returns when the call is answered or given up.
func (g *Gateway) wait(ctx context.Context, c *call, deadline time.Time) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for {
		select {
		case <-c.ended:
			return
		case <-ctx.Done():
			g.abandon(c)
			return
		case now := <-timer.C:
			if until := g.timeUp(c, now); !until.IsZero() {
				timer.Reset(until.Sub(now))
			}
		}
	}
}

// abandon gives up a call whose client is gone. A queued one will never run. A
// claimed one runs to its end unheard, because only an instance whose call has
// ended can take another.
func (g *Gateway) abandon(c *call) {
	g.mu.Lock()
	_, withdrawn := g.table.Withdraw(c.id)
	g.mu.Unlock()
	c.detach()
	if withdrawn {
		g.withdraw(c.id, string(c.function.UID))
	}
}

// timeUp acts on a deadline: that of waiting, or that of running. It returns
// when to look again; the zero time if the call has just been answered.
func (g *Gateway) timeUp(c *call, now time.Time) time.Time {
	g.mu.Lock()
	_, withdrawn := g.table.Withdraw(c.id)
	g.mu.Unlock()
	if withdrawn {
		g.withdraw(c.id, string(c.function.UID))
		c.fail(newProblem(http.StatusGatewayTimeout, invoke.ExecutedNo, reasonQueueTime,
			fmt.Sprintf("no instance took the call within %v; see windlass describe %s", g.config.MaxQueueTime, c.function.Key())))
		return time.Time{}
	}
	switch runBy := c.running(); {
	case runBy.IsZero():
		// Between claim and start, or between release and offer.
		return now.Add(runGrace)
	case runBy.After(now):
		return runBy
	}
	c.fail(timedOut(c.function))
	c.stop()
	return time.Time{}
}

func timedOut(fn *v1alpha1.Function) problem {
	return newProblem(http.StatusGatewayTimeout, invoke.ExecutedMaybe, reasonTimedOut,
		fmt.Sprintf("the function did not finish within its timeout of %v", fn.Spec.Timeout.Duration))
}
