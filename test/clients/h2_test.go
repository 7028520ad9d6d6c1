//go:build clients

package clients

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestNghttpSendsTrailers(t *testing.T) {
	const n = 200 << 10
	out := output(t, "nghttp", "--no-content-length", "--trailer=x-sum: 7", "--header=trailer: x-sum", "--data="+file(t, n), url(peer)+"/see")
	if saw := readSeen(t, bytes.TrimSpace([]byte(out))); saw.Bytes != n || saw.Trailer.Get("X-Sum") != "7" {
		t.Errorf("the function saw %+v", saw)
	}
}

// TestH2loadHasNoFailures has many calls at the same time, on few connections and on many, with bodies
// and without.
func TestH2loadHasNoFailures(t *testing.T) {
	needs(t, "h2load")
	const calls = 2000
	body := file(t, 100<<10)
	for name, arguments := range map[string][]string{
		"h2":      {"--max-concurrent-streams=20", url(peer) + "/see"},
		"h1":      {"--h1", url(peer) + "/see"},
		"h2_100k": {"--max-concurrent-streams=4", "--data=" + body, url(peer) + "/duplex"},
		"h1_100k": {"--h1", url(peer) + "/bytes?n=100000"},
	} {
		t.Run(name, func(t *testing.T) {
			out := output(t, "h2load", append([]string{fmt.Sprintf("--requests=%d", calls), "--clients=8"}, arguments...)...)
			want := fmt.Sprintf("requests: %[1]d total, %[1]d started, %[1]d done, %[1]d succeeded, 0 failed, 0 errored, 0 timeout", calls)
			if !strings.Contains(out, want) || !strings.Contains(out, fmt.Sprintf("status codes: %d 2xx", calls)) {
				t.Error(out)
			}
			figure("h2load{%s} calls=%d failed=%d", name, calls, failedOf(out))
		})
	}
}

// failedOf is how many requests of h2load failed; -1 if it does not say so.
func failedOf(out string) int {
	var total, started, done, succeeded, failed int
	for _, line := range linesWith(out, "requests:") {
		if _, err := fmt.Sscanf(line, "requests: %d total, %d started, %d done, %d succeeded, %d failed", &total, &started, &done, &succeeded, &failed); err == nil {
			return total - succeeded
		}
	}
	return -1
}
