package cluster_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/windlass-dev/windlass/internal/loadgen"
	"github.com/windlass-dev/windlass/pkg/invocation"
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

// traffic is several streams under way.
type traffic struct {
	*loadgen.Load[tripped]
	began   time.Time
	clients []streamClient
	// ending lets a client of long calls rest after its next answer, since stop would wait
	// for a whole further call.
	ending atomic.Bool
}

// streamClient is one client of a stream, with connections of its own.
type streamClient struct {
	stream
	number    int
	transport *http.Transport
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

// restAfterFailure is how long a client rests at least after a call that failed.
const restAfterFailure = 50 * time.Millisecond

const (
	// longCall is what a call takes at least that is not begun when traffic is to end.
	longCall = time.Second
	// untilStop is longer than any traffic.
	untilStop = time.Hour
)

// startTraffic makes calls until stop is called or there were most of them. The first
// call of each client is its own: others that are quicker do not take it.
func startTraffic(ctx context.Context, most int, streams ...stream) *traffic {
	t := &traffic{began: time.Now()}
	for _, s := range streams {
		for n := range s.clients {
			transport := loadgen.NewTransport(1)
			transport.DialContext = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
			transport.DisableKeepAlives = s.oneCall
			t.clients = append(t.clients, streamClient{s, n, transport})
		}
	}
	// It tells the calls from those of other traffic.
	name := strconv.FormatInt(t.began.UnixNano(), 36)
	t.Load = loadgen.Start(ctx, loadgen.Config[tripped]{
		Clients: len(t.clients), Calls: most,
		Next: func(turn loadgen.Turn) func(context.Context) tripped {
			c := t.clients[turn.Client]
			return func(context.Context) tripped {
				return c.call(fmt.Sprintf("%s-%d-%d-%s", c.name, c.number, turn.N, name))
			}
		},
		Rest: func(c tripped) time.Duration {
			pause := c.usual - c.takes
			switch {
			case c.kind != "":
				return max(pause, restAfterFailure)
			case c.takes >= longCall && t.ending.Load():
				return untilStop
			}
			return pause
		},
	})
	return t
}

// call makes one call. It is not cancelled when the traffic is stopped.
func (s streamClient) call(name string) tripped {
	named := func(text string) string { return strings.ReplaceAll(text, "CALL", name) }
	client := loadgen.Client{Transport: s.transport, Timeout: callLimit, Keep: 1 << 20}
	answer := client.Do(context.Background(), loadgen.Request{Method: s.method, URL: named(s.url), Body: []byte(named(s.body)), Resend: true})
	c := tripped{
		stream: s.name, name: name, began: answer.Began, ended: answer.Ended, takes: s.takes, usual: s.takes + s.pause,
		sent: answer.Sent, invocation: answer.Header.Get(invocation.HeaderInvocationID),
	}
	switch {
	case answer.Err != nil && answer.Status != 0:
		c.kind, c.detail = "transport: the answer breaks off", answer.Err.Error()
	case answer.Err != nil:
		c.kind, c.detail = transportKind(answer), answer.Err.Error()
	case answer.Status != http.StatusOK:
		var problem struct{ Reason string }
		_ = json.Unmarshal(answer.Body, &problem) // another answer has no reason
		c.kind = fmt.Sprintf("status %d, executed %q, reason %q", answer.Status, answer.Header.Get(invocation.HeaderExecuted), problem.Reason)
		c.detail = string(answer.Body)
	}
	return c
}

// transportKind says where a call without an answer has broken.
func transportKind(c loadgen.Call) string {
	where := "on a new connection"
	switch {
	case c.Sent == 0:
		where = "before it was sent"
	case c.Reused:
		where = "on a connection that was used before"
	}
	what := "broken"
	for _, known := range []string{"connection refused", "connection reset", "EOF", "deadline exceeded", "i/o timeout", "broken pipe", "no route"} {
		if strings.Contains(c.Err.Error(), known) {
			what = known
			break
		}
	}
	return fmt.Sprintf("transport: %s %s", what, where)
}

// stop stops the clients, waits for the calls that run, and returns what was seen.
func (t *traffic) stop() trafficResult {
	t.Stop()
	for _, c := range t.clients {
		c.transport.CloseIdleConnections()
	}
	return t.since(t.began)
}

// since is what was seen of the calls that ended after a time.
func (t *traffic) since(from time.Time) trafficResult {
	calls := slices.DeleteFunc(t.Records(), func(c tripped) bool { return !c.ended.After(from) })
	return trafficResult{calls: calls, exhausted: t.Exhausted()}
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
