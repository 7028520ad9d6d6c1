//go:build clients

package clients

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windlass-dev/windlass/internal/monitor/scrape"
	"github.com/windlass-dev/windlass/internal/sleep"
)

// occupy lets a call run for a while at a function with one instance, and returns when it has
// begun. Wait returns when its answer has come.
func occupy(t *testing.T, function string, during time.Duration) (wait func()) {
	t.Helper()
	nonce := rand.Text()
	only(t, function)
	ended := make(chan answer, 1)
	go func() {
		ended <- curl(t, "--header", "Lab-Nonce: "+nonce, fmt.Sprint(url(function), "/see?ms=", during.Milliseconds()))
	}()
	err := sleep.Until(t.Context(), 20*time.Millisecond, func() (bool, error) { return began(t, nonce), nil })
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if got := <-ended; got.code() != "200" {
			t.Errorf("the call that ran: %s %s", got.status, got.body)
		}
	}
}

// began reports whether a function has begun with a call.
func began(t *testing.T, nonce string) bool {
	t.Helper()
	text, err := os.ReadFile(windlass.RunLog)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return slices.Contains(strings.Split(string(text), "\n"), "began "+nonce)
}

// TestACallWhoseClientHasLeftNeverRuns has clients that wait for the only instance, and leave.
func TestACallWhoseClientHasLeftNeverRuns(t *testing.T) {
	small, big := file(t, 1000), file(t, 5<<20)
	kinds := map[string][]string{
		"http1.0":         {"--http1.0"},
		"http1.1":         {"--http1.1"},
		"http2":           {"--http2-prior-knowledge"},
		"http1.1_small":   {"--http1.1", "--data-binary", "@" + small},
		"http1.1_big":     {"--http1.1", "--data-binary", "@" + big},
		"http1.1_expects": {"--http1.1", "--header", "Expect: 100-continue", "--expect100-timeout", "30", "--data-binary", "@" + big},
		"http2_big":       {"--http2-prior-knowledge", "--data-binary", "@" + big},
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	var clients sync.WaitGroup
	t.Cleanup(clients.Wait)
	wait := occupy(t, single, 5*time.Second)
	nonces, ended := make(map[string]string), make(chan error, len(kinds))
	for kind, arguments := range kinds {
		nonces[kind] = rand.Text()
		cmd := exec.CommandContext(ctx, "curl", append([]string{
			"--silent", "--show-error", "--fail", "--header", "Lab-Nonce: " + nonces[kind], url(single) + "/see",
		}, arguments...)...)
		clients.Go(func() {
			out, err := cmd.CombinedOutput()
			ended <- fmt.Errorf("%s does not wait: %v: %s", kind, err, out)
		})
	}
	awaitInFlight(t, single, 1+len(kinds), ended)
	leave()
	clients.Wait()
	wait()
	// The answer to one that comes behind them is the proof that their turn has passed.
	stayed := rand.Text()
	if got := curl(t, "--header", "Lab-Nonce: "+stayed, url(single)+"/see"); got.code() != "200" || !began(t, stayed) {
		t.Errorf("the one that stayed: %s %s", got.status, got.body)
	}
	for kind, nonce := range nonces {
		if began(t, nonce) {
			t.Errorf("%s: the call ran although its client had left", kind)
		}
	}
}

// awaitInFlight waits until the gateway has that many calls of a function in flight. It fails if one ends before.
func awaitInFlight(t *testing.T, function string, calls int, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), settleWithin)
	defer cancel()
	err := sleep.Until(ctx, 20*time.Millisecond, func() (bool, error) {
		select {
		case err := <-ended:
			return false, err
		default:
		}
		n, err := inFlight(ctx, function)
		return n == calls, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// inFlight is how many calls of a function wait or run at the gateway.
func inFlight(ctx context.Context, function string) (calls int, err error) {
	families, err := scrape.Metrics(ctx, http.DefaultTransport, windlass.MetricsURL(windlass.Gateways[0]))
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() != "windlass_gateway_invocations_in_flight" {
			continue
		}
		for _, series := range family.GetMetric() {
			for _, label := range series.GetLabel() {
				if label.GetName() == "function" && label.GetValue() == function {
					calls += int(series.GetGauge().GetValue())
				}
			}
		}
	}
	return calls, nil
}

// A client that still sends when its call is refused can read why, and when to come again.
func TestARefusedClientReadsWhy(t *testing.T) {
	body := file(t, 5<<20)
	wait, refused := occupy(t, refusing, 2*time.Second), rand.Text()
	for _, version := range []string{"--http1.0", "--http1.1"} {
		got := curl(t, version, "--header", "Expect:", "--header", "Lab-Nonce: "+refused, "--data-binary", "@"+body, url(refusing)+"/see")
		if got.code() != "429" || got.header.Get("Retry-After") == "" || got.header.Get("Windlass-Executed") != "no" || got.header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %s %v %s", version, got.status, got.header, got.body)
		}
	}
	// For curl see TestClientsGetAnEarlyAnswer.
	out := output(t, "nghttp", "--verbose", "--header=lab-nonce: "+refused, "--data="+body, url(refusing)+"/see")
	for _, want := range []string{":status: 429", "retry-after: ", "windlass-executed: no", `"reason":"`} {
		if !strings.Contains(out, want) {
			t.Errorf("HTTP/2: no %q in %s", want, out)
		}
	}
	wait()
	if began(t, refused) {
		t.Error("a refused call ran")
	}
}
