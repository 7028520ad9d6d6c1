package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/windlass-dev/windlass/api/v1alpha1"
	"github.com/windlass-dev/windlass/pkg/gateway/address"
	"github.com/windlass-dev/windlass/pkg/gateway/auth"
	"github.com/windlass-dev/windlass/pkg/gateway/core"
	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/gateway/timeline"
	"github.com/windlass-dev/windlass/pkg/invocation"
	"github.com/windlass-dev/windlass/pkg/rollout"
)

// ServeHTTP serves functions on hosts of their own and, on the origin that they share,
// at /function/NAME.NAMESPACE/... and, for the namespace default, at /function/NAME/...
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	received := time.Now()
	if r.ProtoMajor == 1 {
		// That of the connection's last answer may have passed.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
	}
	// Find out which function is called, and by whom.
	to, p := g.route(r)
	caller, err := g.authenticate(r, to)
	if err != nil && (p == nil || p.Reason == problems.FunctionNotFound) {
		g.reject(w, r, nil, denied(err))
		return
	}
	// Refuse what will not be run, before any of the body is read.
	if p == nil {
		p = g.checkRequest(r, to.uri)
	}
	if p == nil {
		to.unit, p = g.picker.pick(to.entry, to.tag)
	}
	// Reserve room for the call.
	var held reservation
	if p == nil {
		held, p = g.reserve(r, to.key.Namespace)
	}
	if p != nil {
		g.reject(w, r, to.functionOrNil(), *p)
		return
	}
	// Answer it.
	c := g.newCall(w, r, to, received, held, caller)
	g.answerCall(c)
	// Let the client see how it ended.
	switch {
	case c.answerBroken():
		c.client.abortConnection()
	case !c.client.body.ended.Load():
		g.linger(r, c.client.body.asked.Load())
	}
}

// reserve reserves room for a call, or says why there is none.
func (g *Gateway) reserve(r *http.Request, namespace string) (reservation, *problem) {
	held := reservation{namespace: namespace, bytes: headMemory(r) + bodyMemory(r)}
	return held, g.admitter.admit(held, g.deps.Callers.Limits(namespace))
}

// answerCall answers an admitted call, and leaves nothing behind that uses the request or the
// response writer.
func (g *Gateway) answerCall(c *call) {
	defer c.reservation.dropRef()
	var series *functionSeries
	// Read a small body first, so that a slow client costs no instance.
	if p := c.readSmall(); p != nil {
		g.shell.step(c, refuseUnread, *p)
	} else {
		// Let it wait for an instance, until it is answered or the client is gone.
		series = g.serve(c)
	}
	// Answer, where the function has not.
	c.client.writeProblem(g.config.ProblemDetail)
	c.client.body.close()
	end := c.callEnd()
	g.metrics.callEnded(c, series, &end)
	g.recordCall(c, &end)
}

// refuseUnread ends a call whose request could not be read.
func refuseUnread(v *core.Invocation) core.Decision { return v.Abort(false) }

// serve returns when the call is answered or given up, and does not wait any
// more. The series count it, unless it was not admitted.
func (g *Gateway) serve(c *call) *functionSeries {
	if !g.calls.add(c) {
		g.shell.step(c, refuseUnread, overloaded(g.config.MaxInvocations, g.config.MaxBodyMemory))
		return nil
	}
	series := g.metrics.callAdmitted(c.function)
	c.decide(func(v *core.Invocation) core.Decision {
		c.times.Offered(time.Now())
		return v.Queue(invocation.NewToken(), v.Spec().Admitted)
	}, problem{})
	g.shell.enqueue(c).flush(c)
	g.wait(c)
	return series
}

// routeTarget is where a request goes.
type routeTarget struct {
	// key names a function, which need not exist; zero if the request names none.
	key invocation.FunctionKey
	// entry is nil if the function does not exist.
	entry *rollout.Entry
	// unit is the unit that the call is assigned to.
	unit *v1alpha1.Function
	// uri is what of the path is the function's, and the query.
	uri string
	// tag is that of the part of the function's traffic that is called, or "".
	tag string
	// shared is the function's path on the origin that functions share, as the client
	// wrote it; empty on an origin of its own.
	shared string
}

// functionOrNil is the function; nil if it does not exist.
func (r routeTarget) functionOrNil() *v1alpha1.Function {
	if r.entry == nil {
		return nil
	}
	return r.entry.Function
}

// route finds out where a request goes.
func (g *Gateway) route(r *http.Request) (routeTarget, *problem) {
	if p := checkMethod(r.Method); p != nil {
		return routeTarget{}, p
	}
	to, p := g.routeByHostOrPath(r)
	if p != nil {
		return to, p
	}
	entry, known := g.deps.Catalog.Get(to.key)
	if !known {
		p := newProblem(problems.FunctionNotFound,
			fmt.Sprintf("there is no function %q in the namespace %q; see windlass list --all-namespaces", to.key.Name, to.key.Namespace))
		return to, &p
	}
	to.entry = entry
	if to.uri == "" {
		to.uri = "/"
	}
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		to.uri += "?" + r.URL.RawQuery
	}
	return to, nil
}

// routeByHostOrPath routes a request by its host or its path. A host below the domain never
// counts as the shared origin; otherwise data that a page of the shared origin keeps in a
// browser would reach the next function of that host. The host of a tag is an origin of that
// tag, whatever a header says.
func (g *Gateway) routeByHostOrPath(r *http.Request) (routeTarget, *problem) {
	path, host := rawPath(r.URL), address.Hostname(r.Host)
	to := routeTarget{uri: path, tag: r.Header.Get(invocation.HeaderTag)}
	hosts, claimed := g.config.URLs.Hosts(), false
	key, tag, known := hosts.Parse(host)
	if !known {
		key, known, claimed = g.own.owner(host)
	}
	switch {
	case !known && hosts.Below(host):
		p := newProblem(problems.FunctionNotFound, "no function has this host; see windlass list --all-namespaces")
		return routeTarget{}, &p
	case !known:
		if to.key, to.uri, known = address.OfPath(path); !known && claimed {
			p := newProblem(problems.HostNotPermitted,
				"a function asks for this host, and its namespace may not have it; the administrator grants it by tenancy.namespaces.NAMESPACE.hosts in the chart's values")
			return routeTarget{}, &p
		} else if !known {
			p := newProblem(problems.UnknownPath,
				"nothing is at this path; functions are called at /function/NAME.NAMESPACE/... or, in the namespace default, /function/NAME/...")
			return routeTarget{}, &p
		}
		to.shared = strings.TrimSuffix(path, to.uri)
		return to, nil
	case path == ownPath || strings.HasPrefix(path, ownPath+"/") || !strings.HasPrefix(path, "/"):
		p := newProblem(problems.UnknownPath, "nothing is at this path of a function's host")
		return routeTarget{}, &p
	}
	to.key, to.tag = key, cmp.Or(tag, to.tag)
	return to, nil
}

// checkMethod refuses the methods for proxies and servers: CONNECT asks for a tunnel, and an
// answer to TRACE would repeat the caller's secrets. It refuses those that no request line has,
// which net/http does not look for in HTTP/2. It returns nil for every other method.
func checkMethod(method string) *problem {
	if !httpguts.ValidHeaderFieldName(method) { // both are tokens
		p := newProblem(problems.Malformed, fmt.Sprintf("the request's method %.40q is not valid", method))
		return &p
	}
	if method != http.MethodConnect && method != http.MethodTrace {
		return nil
	}
	p := newProblem(problems.MethodNotAllowed, "functions cannot be called with the method "+method)
	return &p
}

// rawPath is the path as the client wrote it, with invalid bytes percent-encoded.
// url.URL.EscapedPath is not enough: if there is one such byte it decodes the whole path
// first, and a formerly escaped slash then separates a namespace from a name.
func rawPath(u *url.URL) string {
	if u.RawPath == "" {
		return u.EscapedPath()
	}
	var path strings.Builder
	for i := range len(u.RawPath) {
		if b := u.RawPath[i]; isPathByte(b) {
			path.WriteByte(b)
		} else {
			fmt.Fprintf(&path, "%%%02X", b)
		}
	}
	return path.String()
}

// isPathByte says whether a byte may be in a path as it is (RFC 3986, 3.3); brackets
// are not, but everybody sends them.
func isPathByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~!$&'()*+,;=:@/%[]", b) >= 0
}

// authenticate identifies the caller. Whether a function exists is shown only to callers who
// may call it.
func (g *Gateway) authenticate(r *http.Request, to routeTarget) (auth.Caller, error) {
	if to.key == (invocation.FunctionKey{}) {
		return auth.Caller{}, nil
	}
	return g.deps.Callers.Authenticate(r.Header, to.key)
}

// checkRequest says why a call will not be admitted, or nil.
func (g *Gateway) checkRequest(r *http.Request, uri string) *problem {
	part, isText := isUTF8(r, uri)
	switch {
	case g.draining.Load():
		return new(newProblem(problems.GatewayDraining, "this gateway is shutting down"))
	case hopCount(r.Header) >= maxHops:
		return new(newProblem(problems.TooDeep,
			fmt.Sprintf("%d functions have called each other to get here; see that none calls itself without end", maxHops)))
	case r.ContentLength > g.config.MaxBody:
		return new(tooBig(g.config.MaxBody))
	case !isText:
		return new(newProblem(problems.NotUTF8,
			fmt.Sprintf("the request's %s is not UTF-8; encode it, for example in percent-encoding", part)))
	case !isWellFormed(r):
		return new(newProblem(problems.Malformed,
			"the request's query or host has a byte that no URL has there, such as a space, or it names two hosts; percent-encode it, or name one"))
	}
	return nil
}

// isUTF8 reports whether path, query and host are UTF-8, as the message to an instance
// requires, and otherwise names the part that is not.
func isUTF8(r *http.Request, uri string) (part string, ok bool) {
	switch {
	case !utf8.ValidString(uri):
		return "path or query", false
	case !utf8.ValidString(r.Host):
		return "host", false
	}
	return "", true
}

// isWellFormed reports whether query and host of a request could have come in HTTP/1.1, in
// whose request line a space ends the query. net/http checks neither in HTTP/2. Characters
// that browsers do not encode get through, although RFC 3986 requires that.
func isWellFormed(r *http.Request) bool {
	for i := range len(r.URL.RawQuery) {
		if b := r.URL.RawQuery[i]; b <= ' ' || b == 0x7f || b == '"' || b == '<' || b == '>' || b == '#' {
			return false
		}
	}
	// HTTP/2 allows the host in a header too, which net/http does not compare.
	for _, host := range r.Header["Host"] {
		if host != r.Host {
			return false
		}
	}
	return httpguts.ValidHostHeader(r.Host)
}

func (g *Gateway) newCall(w http.ResponseWriter, r *http.Request, to routeTarget, received time.Time, held reservation, caller auth.Caller) *call {
	now, unit := time.Now(), to.unit
	chain := callChain{caller: caller, hopCount: hopCount(r.Header) + 1, proxied: g.config.TrustedProxies.trusts(r.RemoteAddr)}
	mayWait := cmp.Or(unit.Spec.Calls.QueueTimeout.Duration, g.config.MaxQueueTime)
	c := &call{
		callState: callState{
			id: invocation.NewID(now), function: to.entry.Function, tag: to.tag, to: destination{unit, to.entry},
			changed: make(chan struct{}, 1), times: timeline.Begin(received),
			invocation: *core.New(core.Spec{
				Admitted: now, MaxQueueTime: mayWait, Timeout: unit.Spec.Template.Timeout.Duration,
				MayRepeat: unit.Spec.Calls.MayRepeat() && isSmall(r), CancelOnDisconnect: unit.Spec.Calls.CancelOnDisconnect(),
			}),
		},
		uri: to.uri, upgrade: upgradeOf(r), trailers: announcedTrailers(r, chain.proxied),
		reservation: reservationRef{admitter: g.admitter, holders: 1, held: held},
	}
	c.whole = isSmall(r) && c.upgrade == ""
	c.client = client{
		state: &c.callState, request: r, shared: to.shared, w: w, rc: *http.NewResponseController(w),
		body: requestBody{body: r.Body, conn: &c.client.rc, budget: g.config.bodyWait},
	}
	// Without it, HTTP/1.1 would read the rest of the body before the first
	// byte of the answer is sent. HTTP/2 is full duplex anyway and says no.
	_ = c.client.rc.EnableFullDuplex()
	// A function of another protocol begins once the body is whole, so a pause would only hold its instance.
	c.client.body.mayPause.Store(unit.Spec.Template.Protocol == v1alpha1.ProtocolHTTP && invocation.IsGRPC(r.Header.Get("Content-Type")))
	c.waiting = core.Waiting[*call]{Call: c, Since: now}
	c.scope = g.deps.Traces.Begin(r.Header, c.id)
	c.headers = c.inTrace(requestHeaders(r, c.id, chain))
	return c
}

// readSmall reads the whole body if its length is known and small, or says why it cannot. A body of
// unknown length is not read ahead: its sender may wait for the answer.
func (c *call) readSmall() *problem {
	if !c.whole {
		c.client.body.ended.Store(c.upgrade != "") // such a request has none
		return nil
	}
	if n := c.client.request.ContentLength; n > 0 {
		c.small = make([]byte, n)
		spec, slowest := c.invocation.Spec(), bodyGrace+allowance(n)
		_ = c.client.rc.SetReadDeadline(spec.Admitted.Add(min(spec.MaxQueueTime, slowest)))
		c.client.body.asked.Store(true)
		_, err := io.ReadFull(c.client.request.Body, c.small)
		_ = c.client.rc.SetReadDeadline(time.Time{})
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return new(unreadable("it ends before its Content-Length"))
		case errors.Is(err, os.ErrDeadlineExceeded) && spec.MaxQueueTime < slowest:
			return new(tooLate(spec.MaxQueueTime))
		case errors.Is(err, os.ErrDeadlineExceeded):
			return new(tooSlow())
		case err != nil:
			return new(unreadable(err.Error()))
		}
	}
	c.client.body.ended.Store(true)
	return nil
}

// wait returns when the call is answered or its client has disconnected. A queued call of a
// disconnected client never runs. A claimed one runs to its end, because only an instance
// whose call has ended can take another, unless the function asks for its cancellation.
func (g *Gateway) wait(c *call) {
	check, stop := c.disconnectChecks()
	defer stop()
	left := c.client.request.Context().Done()
	for {
		select {
		case <-c.changed:
			// Also what was cut: without a head, a client may take the call for one that was not made.
			if answer, _ := c.answer(); !answer.Final() || answer == core.AnswerCut {
				g.relay(c)
			}
			if c.answered() {
				return
			}
		case <-check:
			if g.deps.Left(c.client.request) {
				g.shell.step(c, (*core.Invocation).ClientLeftEarly, problem{})
			}
		case <-left:
			if !c.client.body.slow.Load() {
				g.clientLeft(c)
				return
			}
			// Not the client has left: it was the reading that was given up, which the
			// attempt that read answers, unless the function has.
			left = nil
		}
	}
}

// clientLeft records that the client of a call has disconnected.
func (g *Gateway) clientLeft(c *call) {
	g.shell.step(c, (*core.Invocation).ClientLeft, problem{})
}

// disconnectCheckInterval is how often a waiting call checks for its client while the body is
// not read.
const disconnectCheckInterval = 500 * time.Millisecond

// disconnectChecks ticks when to check whether the client of a waiting call has left: never,
// if net/http reports it.
func (c *call) disconnectChecks() (when <-chan time.Time, stop func()) {
	if c.client.request.ProtoMajor != 1 || c.client.body.ended.Load() {
		return nil, func() {}
	}
	ticker := time.NewTicker(disconnectCheckInterval)
	return ticker.C, ticker.Stop
}

// rejectReadTimeout is how long a rejection waits for a body on its way, so that the
// connection can be used again.
const rejectReadTimeout = 20 * time.Millisecond

// reject answers a request that is not admitted. It does not wait for a slow body.
func (g *Gateway) reject(w http.ResponseWriter, r *http.Request, fn *v1alpha1.Function, p problem) {
	if fn != nil {
		p.Function = fn.Key().String()
	}
	g.metrics.callRejected(fn, p.Reason)
	rc := http.NewResponseController(w)
	arrived := r.ContentLength == 0
	if !arrived && r.ProtoMajor == 1 && r.Header.Get("Expect") == "" {
		_ = rc.EnableFullDuplex()
		_ = rc.SetReadDeadline(time.Now().Add(rejectReadTimeout))
		_, err := io.CopyN(io.Discard, r.Body, smallBody)
		if arrived = errors.Is(err, io.EOF); !arrived {
			w.Header().Set("Connection", "close")
		}
	}
	p.write(w, g.config.ProblemDetail)
	if !arrived {
		g.linger(r, false)
	}
}
