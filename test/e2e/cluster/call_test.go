package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/windlass-dev/windlass/pkg/invocation"
)

// answer is an answer with its whole body.
type answer struct {
	status   int
	header   http.Header
	body     string
	duration time.Duration
}

func (a answer) executed() string { return a.header.Get(invocation.HeaderExecuted) }

// id is the id that the gateway has given to the call.
func (a answer) id() string { return a.header.Get(invocation.HeaderInvocationID) }

// host is the host name of the pod that has answered a path without a meaning of its own.
func (a answer) host() string {
	var echo struct{ Hostname string }
	_ = json.Unmarshal([]byte(a.body), &echo) // another answer has no host
	return echo.Hostname
}

func (a answer) String() string {
	return fmt.Sprintf("%d, executed %s, after %v: %s", a.status, a.executed(), a.duration.Round(time.Millisecond), a.body)
}

// call calls a function and fails the spec if there is no answer at all. The path
// begins with a slash and may have a query.
func (t *tenant) call(name, path string) answer {
	GinkgoHelper()
	a, err := t.tryCall(t.ctx, name, path)
	Expect(err).NotTo(HaveOccurred())
	return a
}

// post is call with a body.
func (t *tenant) post(name, path, body string) answer {
	GinkgoHelper()
	a, err := t.send(t.ctx, http.MethodPost, name, path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	return a
}

// tryCall is call that may fail, for any goroutine.
func (t *tenant) tryCall(ctx context.Context, name, path string) (answer, error) {
	return t.send(ctx, http.MethodGet, name, path, nil)
}

// send sends a request with header fields, each a name and a value.
func (t *tenant) send(ctx context.Context, method, name, path string, body io.Reader, fields ...string) (answer, error) {
	return send(ctx, method, "", fmt.Sprintf("/function/%s.%s%s", name, t.namespace, path), body, fields...)
}

// send sends a request to the gateways, whatever they make of its host and path. Without a
// host it has theirs.
func send(ctx context.Context, method, host, path string, body io.Reader, fields ...string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, world.gateway+path, body)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i+1 < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	request.Host = host
	began := time.Now()
	response, err := world.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(text), time.Since(began)}, err
}
