package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/pkg/gateway/problems"
	"github.com/windlass-dev/windlass/pkg/invocation"
)

// maxProblem is how much of a problem's body is read, in bytes.
const maxProblem = 1 << 20

const (
	// expectContinueAbove is the largest body, in bytes, that is sent without asking first
	// whether the gateway will take it.
	expectContinueAbove = 1 << 20
	// expectTimeout is how long to wait for that answer.
	expectTimeout = 5 * time.Second
)

// problem is what the gateway answers when the function does not.
type problem struct {
	Detail string `json:"detail"`
	Reason string `json:"reason"`
}

// exchange sends the request once, and prints what comes back. Redirects are
// answers like any other.
func (i *invoker) exchange(ctx context.Context, key invocation.FunctionKey, request *http.Request, flags invokeFlags, way *route) error {
	var sent atomic.Bool
	if request.ContentLength > expectContinueAbove {
		// A request that is refused for its size need not be sent, and looks like one that was
		// lost on its way.
		request.Header.Set("Expect", "100-continue")
	}
	response, err := i.transport(way, &sent).RoundTrip(request.WithContext(ctx))
	if err != nil {
		return noAnswerError(key, request, err, flags.timeout, way.hint, sent.Load())
	}
	defer response.Body.Close()
	if flags.verbose {
		printHead(i.Err, response)
	}
	executed := invocation.Executed(response.Header.Get(invocation.HeaderExecuted))
	if executed != invocation.ExecutedYes {
		return i.refusalError(key, response, executed)
	}
	if err := i.printBody(response); err != nil {
		return maybef("the answer of function %s was cut off: %w; it did run: check what it has done before you call it again", key, err)
	}
	return i.functionFailure(key, response)
}

// transport sends one request, and sets sent once it has a connection for it. A transport repeats a
// request on its own when a connection that it has used before breaks. This one uses each only once.
func (i *invoker) transport(way *route, sent *atomic.Bool) *http.Transport {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: way.dialNoting(sent), ExpectContinueTimeout: expectTimeout}
	if way.dial == nil {
		transport.Proxy = i.proxy
	}
	return transport
}

// functionFailure is the error of a call whose function answered with an error; nil otherwise.
func (i *invoker) functionFailure(key invocation.FunctionKey, response *http.Response) error {
	kind := response.Header.Get(invocation.HeaderFunctionError)
	if response.StatusCode < http.StatusBadRequest && kind == "" {
		return nil
	}
	if kind != "" {
		kind = ", error " + kind
	}
	return functionErrorf("function %s ran and answered %s%s; see what it wrote: windlass logs %s",
		key, response.Status, kind, i.shortName(key))
}

// noAnswerError says why there is no answer. Without a connection nothing was sent.
func noAnswerError(key invocation.FunctionKey, request *http.Request, err error, timeout time.Duration, hint string, sent bool) error {
	const mayHaveRun = "it may have run; call it again only if running it twice does no harm"
	if sent && errors.Is(err, context.DeadlineExceeded) {
		return maybef("function %s did not answer within %s; %s, and perhaps give it more time with --timeout", key, timeout, mayHaveRun)
	}
	at := (&url.URL{Scheme: request.URL.Scheme, Host: request.URL.Host}).String()
	if !sent {
		return fmt.Errorf("no answer from the gateway at %s: %w; the function did not run; %s", at, err, hint)
	}
	return maybef("no answer from the gateway at %s: %w; %s, and %s", at, err, mayHaveRun, hint)
}

// refusalError is the error of a call that Windlass refused or lost, with what to do about it.
func (i *invoker) refusalError(key invocation.FunctionKey, response *http.Response, executed invocation.Executed) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxProblem))
	var p problem
	if json.Unmarshal(body, &p) != nil || p.Detail == "" {
		p.Detail = strings.TrimSpace(string(body))
	}
	what := cmp.Or(p.Reason, response.Status)
	text := fmt.Sprintf("calling function %s failed: %s", key, what)
	if p.Detail != "" {
		text += ": " + p.Detail
	}
	switch executed {
	case invocation.ExecutedNo:
		return errors.New(text + "\nit did not run; " + i.nextStep(key, p.Reason, response.Header.Get("Retry-After")))
	case invocation.ExecutedMaybe:
		return maybef("%s\nit may have run; call it again only if running it twice does no harm, and see windlass logs %s", text, i.shortName(key))
	default:
		return maybef("%s\nthis is no answer of a Windlass gateway: something else listens at its address, see windlass describe %s", text, i.shortName(key))
	}
}

// nextStep is what to do about a call that did not run.
func (i *invoker) nextStep(key invocation.FunctionKey, reason, retryAfter string) string {
	var step string
	switch reason {
	case problems.CredentialsMissing, problems.CredentialsInvalid, problems.NotAllowed:
		step = "put an API key for it into $" + keyVariable + "; windlass keys create makes one"
	case string(invocation.RefusedCannotStart):
		step = fmt.Sprintf("see why: windlass describe %s and windlass logs %s", i.shortName(key), i.shortName(key))
	case problems.BodyTooLarge:
		step = "send less"
	case problems.FunctionNotFound, problems.FunctionDeleted:
		step = "see windlass list --all-namespaces"
	case problems.UnknownTag:
		step = "see the tags that it has: windlass rollout history " + i.shortName(key)
	case problems.UnknownPath:
		step = "correct --gateway or -H Host: the gateway gets another path than that of a function"
	case problems.HostNotPermitted:
		step = "call it without -H Host, or have the host granted to its namespace"
	default:
		step = fmt.Sprintf("see windlass describe %s", i.shortName(key))
	}
	if retryAfter == "" {
		return step
	}
	if _, err := strconv.Atoi(retryAfter); err == nil {
		retryAfter = "in " + retryAfter + " s"
	} else {
		retryAfter = "at " + retryAfter
	}
	return "try again " + retryAfter + ", or " + step
}

// shownHeaders are the headers, besides Windlass's own, that --verbose shows.
var shownHeaders = []string{"Content-Type", "Retry-After", invocation.HeaderTiming}

func printHead(w io.Writer, response *http.Response) {
	fmt.Fprintf(w, "%s %s\n", response.Proto, response.Status)
	for _, name := range slices.Sorted(maps.Keys(response.Header)) {
		if strings.HasPrefix(name, "Windlass-") || slices.Contains(shownHeaders, name) {
			fmt.Fprintf(w, "%s: %s\n", name, strings.Join(response.Header[name], ", "))
		}
	}
}

// printBody copies the body as it comes. On a terminal a small body of JSON is laid out, and the
// prompt begins on a line of its own.
func (i *invoker) printBody(response *http.Response) error {
	if !isTerminal(i.Out) {
		_, err := io.Copy(i.Out, response.Body)
		return err
	}
	last := &lastByte{w: i.Out}
	var err error
	if isSmallJSON(response) {
		var body []byte
		body, err = io.ReadAll(response.Body)
		_, _ = last.Write(pretty(body))
	} else {
		_, err = io.Copy(last, response.Body)
	}
	if last.seen && last.b != '\n' {
		fmt.Fprintln(i.Out)
	}
	return err
}

// maxPretty is the largest body, in bytes, that is laid out for people.
const maxPretty = 64 << 10

// isSmallJSON reports whether an answer is to be laid out. One of unknown length may be a stream: to
// wait for its end would hide it.
func isSmallJSON(response *http.Response) bool {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")) &&
		response.ContentLength >= 0 && response.ContentLength <= maxPretty
}

// pretty lays out a whole body that is JSON with things in it, and leaves others alone.
func pretty(body []byte) []byte {
	trimmed := bytes.TrimSpace(body)
	if len(trimmed) == 0 || trimmed[0] != '{' && trimmed[0] != '[' {
		return body
	}
	var out bytes.Buffer
	if json.Indent(&out, trimmed, "", "  ") != nil {
		return body
	}
	return out.Bytes()
}

// lastByte remembers the last byte that was written.
type lastByte struct {
	w    io.Writer
	b    byte
	seen bool
}

func (l *lastByte) Write(p []byte) (int, error) {
	if len(p) > 0 {
		l.b, l.seen = p[len(p)-1], true
	}
	return l.w.Write(p)
}
