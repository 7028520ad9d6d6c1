package cluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/windlass-dev/windlass/internal/sleep"
)

// stream is one kind of calls, made in closed loops.
type stream struct {
	name string
	// url is what is called. In it and in body, which is empty for a call
	// without one, CALL stands for the call's own name.
	method, url, body string
	// oneCall closes the connection after each call.
	oneCall bool
	clients int
	// takes is how long a call runs, and pause the time between two calls of a
	// client.
	takes, pause time.Duration
}

// traffic is several streams under way. It is bounded by most calls in all.
type traffic struct {
	cancel  context.CancelFunc
	clients sync.WaitGroup
	most    int
	began   time.Time
	// name tells its calls from those of other traffic.
	name string

	mu      sync.Mutex
	started int
	calls   []tripped
}

// tripped is a call that has ended.
type tripped struct {
	stream, name string
	began, ended time.Time
	// usual is the time from one answer to the next of an undisturbed client,
	// and takes what of that the call runs.
	usual, takes time.Duration
	// kind is empty for status 200, or else says what went wrong, in words that
	// are the same for all calls with which the same went wrong.
	kind, detail string
	invocation   string
	// sent is how many times the client's library has sent it; on a connection
	// that breaks it may send one again that it deems safe.
	sent int
}

// late is how much longer than it runs a call has taken.
func (c tripped) late() time.Duration { return c.ended.Sub(c.began) - c.takes }

// callLimit is how long a client waits for an answer.
const callLimit = 40 * time.Second

// startTraffic makes calls until stop is called or there were most of them. The first
// call of each client is its own: others that are quicker do not take it.
func startTraffic(ctx context.Context, most int, streams ...stream) *traffic {
	ctx, cancel := context.WithCancel(ctx)
	now := time.Now()
	t := &traffic{cancel: cancel, most: most, began: now, name: strconv.FormatInt(now.UnixNano(), 36)}
	for _, s := range streams {
		for n := range s.clients {
			may := t.take()
			t.clients.Go(func() { t.client(ctx, s, n, may) })
		}
	}
	return t
}

// client makes one call after the other on connections of its own. May says whether
// there is a first one.
func (t *traffic) client(ctx context.Context, s stream, number int, may bool) {
	transport := &http.Transport{
		DialContext:       (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		DisableKeepAlives: s.oneCall,
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: callLimit}
	for i := 0; ctx.Err() == nil && may; i++ {
		c := s.call(client, fmt.Sprintf("%s-%d-%d-%s", s.name, number, i, t.name))
		t.mu.Lock()
		t.calls = append(t.calls, c)
		t.mu.Unlock()
		wait := s.pause
		if c.kind != "" {
			wait = max(wait, 50*time.Millisecond)
		}
		if wait > 0 {
			sleep.For(ctx, wait)
		}
		may = ctx.Err() == nil && t.take()
	}
}

func (t *traffic) take() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.started++
	return t.started <= t.most
}

// call makes one call. It is not cancelled when the traffic is stopped.
func (s stream) call(client *http.Client, name string) tripped {
	c := tripped{stream: s.name, name: name, began: time.Now(), takes: s.takes, usual: s.takes + s.pause}
	c.kind, c.detail = s.try(client, &c)
	c.ended = time.Now()
	return c
}

func (s stream) try(client *http.Client, c *tripped) (kind, detail string) {
	var body io.Reader
	if s.body != "" {
		body = strings.NewReader(strings.ReplaceAll(s.body, "CALL", c.name))
	}
	request, err := http.NewRequest(s.method, strings.ReplaceAll(s.url, "CALL", c.name), body)
	if err != nil {
		return "request", err.Error()
	}
	reused := false
	request = request.WithContext(httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{
		GotConn:      func(i httptrace.GotConnInfo) { reused = i.Reused },
		WroteHeaders: func() { c.sent++ },
	}))
	response, err := client.Do(request)
	if err != nil {
		return transportKind(err, reused, c.sent), err.Error()
	}
	defer response.Body.Close()
	c.invocation = response.Header.Get("X-Windlass-Invocation-Id")
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "transport: the answer breaks off", err.Error()
	}
	if response.StatusCode == http.StatusOK {
		return "", ""
	}
	var problem struct{ Reason string }
	_ = json.Unmarshal(text, &problem) // another answer has no reason
	return fmt.Sprintf("status %d, executed %q, reason %q", response.StatusCode, response.Header.Get("X-Windlass-Executed"), problem.Reason), string(text)
}

// transportKind says where a call without an answer has broken.
func transportKind(err error, reused bool, sent int) string {
	where := "on a new connection"
	switch {
	case sent == 0:
		where = "before it was sent"
	case reused:
		where = "on a connection that was used before"
	}
	what := "broken"
	for _, known := range []string{"connection refused", "connection reset", "EOF", "Client.Timeout", "i/o timeout", "broken pipe", "no route"} {
		if strings.Contains(err.Error(), known) {
			what = known
			break
		}
	}
	return fmt.Sprintf("transport: %s %s", what, where)
}

// stop stops the clients, waits for the calls that run, and returns what was seen.
func (t *traffic) stop() trafficResult {
	t.cancel()
	t.clients.Wait()
	return t.since(t.began)
}

// since is what was seen of the calls that ended after a time.
func (t *traffic) since(from time.Time) trafficResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	var calls []tripped
	for _, c := range t.calls {
		if c.ended.After(from) {
			calls = append(calls, c)
		}
	}
	return trafficResult{calls: calls, exhausted: t.started > t.most}
}

// trafficResult is what clients have seen.
type trafficResult struct {
	calls     []tripped
	exhausted bool
}

// failed are the calls that had another answer than 200, or none.
func (r trafficResult) failed() []tripped {
	var failed []tripped
	for _, c := range r.calls {
		if c.kind != "" {
			failed = append(failed, c)
		}
	}
	return failed
}

// slower counts calls that were later than a limit.
func (r trafficResult) slower(than time.Duration) (n int) {
	for _, c := range r.calls {
		if c.late() > than {
			n++
		}
	}
	return n
}

// quantile is the lateness that a share of the calls did not exceed.
func (r trafficResult) quantile(share float64) time.Duration {
	if len(r.calls) == 0 {
		return 0
	}
	late := make([]time.Duration, len(r.calls))
	for i, c := range r.calls {
		late[i] = c.late()
	}
	slices.Sort(late)
	return late[min(len(late)-1, int(share*float64(len(late))))]
}

// stall is the longest time in which no call of a stream was answered although
// some should have been.
func (r trafficResult) stall() (longest time.Duration, which string) {
	answered := map[string][]tripped{}
	for _, c := range r.calls {
		if c.kind == "" {
			answered[c.stream] = append(answered[c.stream], c)
		}
	}
	for name, calls := range answered {
		slices.SortFunc(calls, func(a, b tripped) int { return a.ended.Compare(b.ended) })
		for i := 1; i < len(calls); i++ {
			if gap := calls[i].ended.Sub(calls[i-1].ended) - calls[i].usual; gap > longest {
				longest, which = gap, name
			}
		}
	}
	return longest, which
}

// String prints figures, the kinds of failures with an example of each, and the
// slowest calls.
func (r trafficResult) String() string {
	var out strings.Builder
	stall, which := r.stall()
	resent := 0
	for _, c := range r.calls {
		if c.sent > 1 {
			resent++
		}
	}
	fmt.Fprintf(&out, "calls=%d failed=%d late_by_1s=%d resent_by_client=%d late_p50_ms=%d late_p99_ms=%d latest_ms=%d longest_stall_ms=%d (%s)\n",
		len(r.calls), len(r.failed()), r.slower(time.Second), resent, r.quantile(0.5).Milliseconds(), r.quantile(0.99).Milliseconds(), r.quantile(1).Milliseconds(), stall.Milliseconds(), which)
	kinds := map[string][]tripped{}
	for _, c := range r.failed() {
		kinds[c.stream+": "+c.kind] = append(kinds[c.stream+": "+c.kind], c)
	}
	for kind, calls := range kinds {
		fmt.Fprintf(&out, "  %d x %s\n", len(calls), kind)
		for _, c := range calls[:min(3, len(calls))] {
			fmt.Fprintf(&out, "      %s to %s %s %s: %s\n", clock(c.began), clock(c.ended), c.name, c.invocation, c.detail)
		}
	}
	slow := slices.DeleteFunc(slices.Clone(r.calls), func(c tripped) bool { return c.late() < time.Second })
	slices.SortFunc(slow, func(a, b tripped) int { return cmp.Compare(b.late(), a.late()) })
	for _, c := range slow[:min(5, len(slow))] {
		fmt.Fprintf(&out, "  late: %s to %s %s %s\n", clock(c.began), clock(c.ended), c.name, c.invocation)
	}
	return out.String()
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
